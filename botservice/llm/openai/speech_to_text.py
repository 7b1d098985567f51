"""Speech into text, by any server with OpenAI's audio endpoint."""

import httpx2

from botservice.core.errors import LLMError
from botservice.core.messages import Attachment
from botservice.llm.openai.options import address_of
from botservice.llm.tls import tls_context

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
