"""Speech into text and text into speech, by any server with OpenAI's audio endpoints."""

from typing import Final

import httpx2

from botservice.config.settings import ModelSettings
from botservice.core.errors import LLMError
from botservice.core.messages import Attachment
from botservice.llm.openai.http_client import OpenAIClients
from botservice.llm.openai.options import address_of
from botservice.llm.proxies_and_tls import tls_context

_VOICE: Final = "alloy"  # every one of OpenAI's speech models has it


class OpenAISpeaker:
    """Asks `/audio/speech` of a server."""

    def __init__(self, model: str, *, base_url: str | None = None, api_key: str | None = None) -> None:
        """Make a speaker.

        Args:
            model: Such as gpt-4o-mini-tts at OpenAI; other servers have names of their own.

        Raises:
            SettingsError: there is neither a key nor a base URL.
        """
        self.model = model
        self._clients = OpenAIClients(ModelSettings.load(), base_url=base_url, api_key=api_key)

    async def speak(self, text: str) -> bytes:
        """Return text as Ogg with Opus.

        Raises:
            LLMError: the server did not speak it.
        """
        client = await self._clients.current()
        import openai

        try:
            said = await client.audio.speech.create(model=self.model, voice=_VOICE, input=text, response_format="opus")
            return await said.aread()
        except openai.APIStatusError as error:
            raise LLMError(f"the server answered {error.status_code}", status_code=error.status_code) from error
        except openai.OpenAIError as error:
            raise LLMError(f"speech was not made: {type(error).__name__}") from error

    async def close(self) -> None:
        """Close its connections."""
        await self._clients.close()


_ANSWER_SECONDS = 60.0
_NO_RIGHT = ": OPENAI_API_KEY is missing, wrong, or not allowed to do this"
_NO_MODEL = ": is OPENAI_TRANSCRIPTION_MODEL a model that is there, and that listens?"
_REMEDIES = {400: _NO_MODEL, 401: _NO_RIGHT, 403: _NO_RIGHT, 404: _NO_MODEL}


class OpenAITranscriber:
    """Asks `/audio/transcriptions` of a server."""

    def __init__(self, base_url: str, *, model: str, api_key: str | None = None) -> None:
        """Make a transcriber.

        Args:
            base_url: Such as https://api.openai.com/v1.
            model: Such as gpt-transcribe at OpenAI; other servers have names of their own.
        """
        self._url = address_of(base_url, "/audio/transcriptions")
        self._model = model
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}

    async def transcribe(self, attachment: Attachment) -> str:
        """Return what is said in a recording."""
        name = attachment.name or f"recording.{_ending(attachment.mime_type)}"
        file = (name, attachment.data or b"", attachment.mime_type)
        try:
            async with httpx2.AsyncClient(timeout=_ANSWER_SECONDS, verify=tls_context()) as client:
                answer = await client.post(
                    self._url, headers=self._headers, data={"model": self._model}, files={"file": file}
                )
                answer.raise_for_status()
                return str(answer.json()["text"])
        except httpx2.HTTPStatusError as error:
            status = error.response.status_code
            text = f"speech was not transcribed: the server answered {status}{_REMEDIES.get(status, '')}"
            raise LLMError(text, status_code=status) from error
        except (httpx2.HTTPError, ValueError, KeyError, TypeError) as error:
            raise LLMError(f"speech was not transcribed: {type(error).__name__}") from error


def _ending(mime_type: str) -> str:
    """Return an ending by which servers know the format; they go by the name."""
    return {"audio/mpeg": "mp3", "audio/mp4": "m4a", "video/mp4": "mp4"}.get(mime_type, mime_type.partition("/")[2])
