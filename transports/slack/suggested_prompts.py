"""Questions that are suggested when a person opens their conversation with the bot."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

from botservice.conversation.context_keys import ContextKeys
from botservice.storage.database import Storage
from transports.common.suggested_questions import questions_about_tools
from transports.slack.client import SlackClient, SlackFailure
from transports.slack.inbound_events import context_keys
from transports.slack.queries import list_own_words
from transports.slack.refusals import Feature, SlackRefusals
from transports.slack.workspaces import SlackPeople, Workspace, Workspaces

ToolNames = Callable[[], Sequence[str]]
"""Returns the names of the agent's tools."""

_MAX_PROMPTS: Final = 4  # Source: docs.slack.dev, assistant.threads.setSuggestedPrompts
_MAX_OWN: Final = 2
_MAX_TITLE: Final = 60
_MAX_QUESTION: Final = 200
_FEWEST_WORDS: Final = 3  # "thanks" and "yes, please" are nothing to say again
_MAX_TRIES: Final = 5
_PAUSE_SECONDS: Final = 1.0


class Suggestions:
    """Suggests what a person has asked before, and what the agent's tools are good for."""

    def __init__(
        self,
        client: SlackClient,
        workspaces: Workspaces,
        people: SlackPeople,
        refusals: SlackRefusals,
        tools: ToolNames,
    ) -> None:
        self._client = client
        self._workspaces = workspaces
        self._people = people
        self._refusals = refusals
        self._tools = tools

    async def show(self, storage: Storage, team_id: str, user_id: str, channel_id: str) -> None:
        """Show a person what they may ask. What they forgot in the meantime goes from there with it."""
        if not await self._refusals.takes(team_id, Feature.PROMPTS):
            return
        workspace = await self._workspaces.find(team_id)
        person = await self._people.find(workspace, user_id)
        keys = ContextKeys.of(context_keys(team_id, channel_id))
        shown: list[str] | None = None
        for _ in range(_MAX_TRIES):  # what was forgotten while Slack was told must not stay there
            said = await storage.read(lambda connection: list_own_words(connection, keys, person.account))
            own = None if said is None else _questions_in(said)
            if own is None or own == shown:
                return
            await self._set(workspace, channel_id, own, person.language)
            shown = own

    async def clear(self, team_id: str, channel_id: str, language: str | None) -> None:
        """Take away what a person has asked before: they have it forgotten."""
        if not await self._refusals.takes(team_id, Feature.PROMPTS):
            return
        for left in reversed(range(_MAX_TRIES)):
            try:
                await self._set(await self._workspaces.find(team_id), channel_id, [], language)
            except SlackFailure as failure:
                if not failure.is_later or not left:
                    raise
                await asyncio.sleep(failure.retry_after_seconds or _PAUSE_SECONDS)
            else:
                return

    async def _set(self, workspace: Workspace, channel_id: str, own: Sequence[str], language: str | None) -> None:
        prompts = [_prompt(each) for each in own]
        prompts += [_prompt(each) for each in questions_about_tools(self._tools(), language)]
        try:
            await self._client.call(
                workspace.token,
                "assistant.threads.setSuggestedPrompts",
                channel_id=channel_id,
                prompts=prompts[:_MAX_PROMPTS],
            )
        except SlackFailure as failure:
            if not failure.is_not_here:
                raise
            await self._refusals.note(workspace.team_id, Feature.PROMPTS, failure)


def _questions_in(said: Sequence[str]) -> list[str]:
    """Return the newest different questions of what a person said, newest first."""
    told = {each.casefold(): each for each in reversed(said) if _is_question(each)}
    return list(reversed(told.values()))[:_MAX_OWN]


def _is_question(text: str) -> bool:
    return len(text.split()) >= _FEWEST_WORDS and len(text) <= _MAX_QUESTION and text[0] not in "!/["


def _prompt(message: str) -> dict[str, Any]:
    title = message if len(message) <= _MAX_TITLE else f"{message[: _MAX_TITLE - 1]}…"
    return {"title": title, "message": message}
