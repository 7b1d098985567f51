"""Asking the turns of a service again, of its own model or of another one by name."""

import contextlib
from collections.abc import AsyncIterator

from botservice.config.settings import Settings
from botservice.core.errors import SettingsError
from botservice.devtools.recorded_turn import RecordedTurn
from botservice.devtools.replay_changes import Changes, own_words
from botservice.devtools.replayed_answers import Comparison
from botservice.devtools.replaying import ask_again, read_again
from botservice.llm.chat import ChatLLM
from botservice.llm.configured import configured_llm
from botservice.service import AgentService
from botservice.storage.database import Storage


class Replayer:
    """Asks turns again for pages and programs, which name a turn by its number."""

    def __init__(self, service: AgentService, settings: Settings) -> None:
        self._service = service
        self._settings = settings

    async def read(self, storage: Storage, context_id: int, turn_id: int, call: int = 1) -> RecordedTurn:
        """Return the record of the turn that would be asked again."""
        return await read_again(self._service, context_id, turn_id, call=call, storage=storage)

    def own_words(self, record: RecordedTurn) -> str:
        """Return the agent's own prompt from the top of a recorded prompt."""
        first = record.prompt[0] if record.prompt else {}
        text = str(first.get("content") or "") if first.get("role") == "system" else ""
        return own_words(text, [record.own_prompt or "", self._service.agent.prompt])

    async def ask(
        self, storage: Storage, context_id: int, turn_id: int, changes: Changes, *, call: int = 1, model: str | None
    ) -> Comparison:
        """Ask a turn's question again; see `ask_again`."""
        async with model_named(self._settings, model) as llm:
            return await ask_again(self._service, context_id, turn_id, changes, call=call, llm=llm, storage=storage)


@contextlib.asynccontextmanager
async def model_named(settings: Settings, name: str | None) -> AsyncIterator[ChatLLM | None]:
    """Yield the model of a name without a fallback, or None if no name is given.

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
        await llm.close()
