"""Text into speech, by any server with OpenAI's audio endpoint."""

from typing import Final

from botservice.config.settings import ModelSettings
from botservice.core.errors import LLMError
from botservice.llm.openai.clients import OpenAIClients

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
