"""Another model for a moment: the one that somebody names, on the server of the settings."""

import contextlib
from collections.abc import AsyncIterator

from botservice.errors import SettingsError
from botservice.llm.chat import ChatLLM
from botservice.llm.configured import configured_llm
from botservice.settings import Settings


@contextlib.asynccontextmanager
async def model_named(settings: Settings, name: str | None) -> AsyncIterator[ChatLLM | None]:
    """Have the model of a name, and nothing in its place where it cannot answer; None where no name is given.

    Raises:
        SettingsError: there is no server to ask.
    """
    if name is None:
        yield None
        return
    if not settings.has_model:
        raise SettingsError("another model needs OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own")
    llm = configured_llm(settings.model_copy(update={"openai_fallback_models": ()}), name)
    try:
        yield llm
    finally:
        close = getattr(llm, "close", None)
        if close is not None:
            await close()
