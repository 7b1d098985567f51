"""The page that a person sees under Home: what the bot keeps of them, and how much they have used it."""

import html
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from botservice.core.messages import Author
from botservice.storage.database import Storage
from botservice.texts import date_in_language, in_language
from transports.slack.client import SlackClient
from transports.slack.manifest import slash_command
from transports.slack.queries import list_facts, read_usage
from transports.slack.workspaces import SlackPeople, Workspaces

_MAX_BLOCKS = 100
_MAX_SECTION_CHARACTERS = 3000
_MAX_FACTS = 100

Say = Callable[..., str]
Section = tuple[str, Sequence[str]]
HomeSection = Callable[[Storage, Author], Awaitable[Section | None]]
"""Returns the heading and the lines of one part of a person's page, as markdown, or None if there is nothing to say."""


class Home:
    """Draws and shows pages."""

    def __init__(
        self, client: SlackClient, workspaces: Workspaces, people: SlackPeople, sections: Sequence[HomeSection]
    ) -> None:
        self._client = client
        self._workspaces = workspaces
        self._people = people
        self._sections = sections

    async def show(self, storage: Storage, team_id: str, user_id: str) -> None:
        """Show a person their page as it is now."""
        workspace = await self._workspaces.find(team_id)
        person = await self._people.find(workspace, user_id)
        author = Author("slack", person.account, person.name)
        say = partial(in_language, language=person.language)
        blocks = [_header(say("home.title")), _section(say("home.welcome", command=slash_command()))]
        own = await _kept(storage, author, say, person.language), await _known(storage, author, say)
        for found in (*own, *[await section(storage, author) for section in self._sections]):
            if found is not None:
                heading, lines = found
                blocks.extend([_header(heading), *(_section(line) for line in lines if line.strip())])
        view = {"type": "home", "blocks": blocks[:_MAX_BLOCKS]}
        await self._client.call(workspace.token, "views.publish", user_id=user_id, view=view)


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
    found = await storage.read(lambda connection: list_facts(connection, person))
    if not found:
        return None
    # As Slack's own markup shows it letter by letter, pinging nobody.
    shown = [f"• {html.escape(text, quote=False)}" for text in found[:_MAX_FACTS]]
    if len(found) > _MAX_FACTS:
        shown.append(say("home.more", count=len(found) - _MAX_FACTS))
    return say("home.known"), [*_packed(shown), say("home.how", command=slash_command())]


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
