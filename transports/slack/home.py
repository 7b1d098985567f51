"""The page that a person sees under Home: what the bot keeps of them, and how much they have used it."""

import asyncio
import html
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from botservice.conversation.context_keys import ContextKeys
from botservice.core.messages import Author
from botservice.people.fact_queries import facts_of
from botservice.people.queries import find_identity
from botservice.storage.database import Connection, Storage
from botservice.texts import date_in_language, in_language
from transports.common.suggested_questions import questions_about_tools
from transports.slack.client import SlackFailure
from transports.slack.context import SlackContext
from transports.slack.inbound_events import context_keys
from transports.slack.installing import slash_command
from transports.slack.queries import list_own_words, read_usage
from transports.slack.refusals import Feature
from transports.slack.workspaces import Workspace, Workspaces

_MAX_BLOCKS = 100
_MAX_SECTION_CHARACTERS = 3000
_MAX_FACTS = 100

Say = Callable[..., str]
Section = tuple[str, Sequence[str]]
"""The heading and the lines of one part of a person's page, as markdown."""


async def show_home(workspaces: Workspaces, storage: Storage, team_id: str, user_id: str) -> None:
    """Show a person their page as it is now."""
    workspace = await workspaces.find(team_id)
    person = await workspaces.find_person(workspace, user_id)
    author = Author("slack", person.account, person.name)
    say = partial(in_language, language=person.language)
    blocks = [_header(say("home.title")), _section(say("home.welcome", command=slash_command()))]
    for found in (await _kept(storage, author, say, person.language), await _known(storage, author, say)):
        if found is not None:
            heading, lines = found
            blocks.extend([_header(heading), *(_section(line) for line in lines if line.strip())])
    await workspace.call("views.publish", user_id=user_id, view={"type": "home", "blocks": blocks[:_MAX_BLOCKS]})


async def _kept(storage: Storage, person: Author, say: Say, language: str | None) -> Section | None:
    """Return how much a person has said to the bot, and where."""
    usage = await storage.read(lambda connection: read_usage(connection, str(person.id)))
    if not usage.messages:
        return say("home.kept"), [say("home.nothing")]
    channels = sum(1 for keys in usage.places if not keys.get("channel_id", "").startswith("D"))
    counted = {
        "messages": say("home.messages", count=usage.messages),
        "conversations": say("home.conversations", count=usage.conversations),
    }
    lines = [say("home.counts", **counted, since=date_in_language(usage.since, language))]
    if channels:
        lines.append(say("home.in_channels", count=channels))
    return say("home.kept"), lines


async def _known(storage: Storage, person: Author, say: Say) -> Section | None:
    """Return what is known of a person, in the words in which it is kept."""
    found = await storage.read(lambda connection: _list_facts(connection, person))
    if not found:
        return None
    # As Slack's own markup shows it letter by letter, pinging nobody.
    shown = [f"• {html.escape(text, quote=False)}" for text in found[:_MAX_FACTS]]
    if len(found) > _MAX_FACTS:
        shown.append(say("home.more", count=len(found) - _MAX_FACTS))
    return say("home.known"), [*_packed(shown), say("home.how", command=slash_command())]


def _list_facts(connection: Connection, person: Author) -> list[str]:
    """Return what is known of a person, in the words in which it is kept."""
    identity = find_identity(connection, person)
    return [] if identity is None else [fact.text for fact in facts_of(connection, identity.person_id)]


def _packed(lines: Sequence[str]) -> list[str]:
    """Return lines in as few sections as hold them."""
    sections = [""]
    for line in lines:
        if len(sections[-1]) + len(line) + 1 > _MAX_SECTION_CHARACTERS:
            sections.append("")
        sections[-1] += f"{line}\n"
    return sections


def _header(text: str) -> dict[str, Any]:
    return {"type": "header", "text": {"type": "plain_text", "text": text[:150]}}


def _section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text[:_MAX_SECTION_CHARACTERS]}}


_MAX_PROMPTS: Final = 4  # Source: docs.slack.dev, assistant.threads.setSuggestedPrompts
_MAX_OWN: Final = 2
_MAX_TITLE: Final = 60
_MAX_QUESTION: Final = 200
_FEWEST_WORDS: Final = 3  # "thanks" and "yes, please" are nothing to say again
_MAX_TRIES: Final = 5
_PAUSE_SECONDS: Final = 1.0


class Suggestions:
    """Suggests what a person has asked before, and what the agent's tools are good for."""

    def __init__(self, slack: SlackContext) -> None:
        self._workspaces = slack.workspaces
        self._refusals = slack.refusals
        self._tools = slack.manners.tools

    async def show(self, storage: Storage, team_id: str, user_id: str, channel_id: str) -> None:
        """Show a person what they may ask. What they forgot in the meantime goes from there with it."""
        if not await self._refusals.takes(team_id, Feature.PROMPTS):
            return
        workspace = await self._workspaces.find(team_id)
        person = await self._workspaces.find_person(workspace, user_id)
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
            await workspace.call(
                "assistant.threads.setSuggestedPrompts", channel_id=channel_id, prompts=prompts[:_MAX_PROMPTS]
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
