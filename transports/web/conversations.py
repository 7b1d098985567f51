"""The conversations of a browser session: the list with its titles and its search, ratings and reasons of answers.

A conversation is opened by its context keys, and the session in those is always the one of the cookie: a guessed name
of a conversation only names a new one of the same session.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from botservice.commands.command import Command
from botservice.commands.why import explain, read_sources
from botservice.conversation.queries import VERDICTS, set_metadata, write_feedback
from botservice.conversation.step_records import read_steps
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Author, Role
from botservice.core.personas import TITLE
from botservice.core.quoting import in_one_line
from botservice.people.queries import find_identity
from botservice.privacy.forgetting import forget_chat
from botservice.storage.database import Connection
from botservice.texts.formatted import Value, say
from botservice.turns.browser_chat_queries import (
    find_answered_turn,
    find_saying,
    list_conversations,
    list_messages,
    list_told,
)
from botservice.turns.earlier_turns import find_attempt
from transports.common.requests import parse_text
from transports.web.backend import Backend
from transports.web.files import without_contents
from transports.web.inbound_events import FIRST, NAME, find_chat, is_mine, session_in
from transports.web.outbound import Shown, iso
from transports.web.pages import HEADERS
from transports.web.requests import chat_of_fields, chat_of_request, read_fields, row_number, session_of_request
from transports.web.sessions import browser_of
from transports.web.streaming import Hub
from transports.web.timeline import plain_text_of

Parts = list[dict[str, Any]]
"""A text in parts as JSON, and of each whether it is what was sought."""

MOST_WORDS: Final = 10
_AROUND: Final = 300  # characters of a message that are looked at, at either side of the first hit
_BEFORE: Final = 40  # characters that are shown before the first hit
_SHOWN: Final = 160  # characters that are shown
_ENDS: Final = (". ", "! ", "? ", "\u3002", "\uff01", "\uff1f")  # also the signs of Chinese and Japanese


Hit = tuple[datetime, Shown]
"""The newest message or notice of a conversation that says what was sought: since when, and its words as JSON."""


def words_of(search: str) -> list[str]:
    """Return the words that are sought: each has to be found."""
    return search.split()[:MOST_WORDS]


def is_in(words: Collection[str], text: str) -> bool:
    """Return whether a text has every word, in any spelling."""
    folded = text.casefold()
    return all(each.casefold() in folded for each in words)


def read_hits(connection: Connection, message_ids: Collection[int], words: Collection[str]) -> dict[int, Hit]:
    """Return what is shown of messages that say the words, by their contexts."""
    rows = list_messages(connection, message_ids)
    return {row.context_id: _hit(row, f"message-{row.id}", _excerpt(row, words)) for row in rows}


def find_told(connection: Connection, identity_id: int, words: Collection[str]) -> dict[int, Hit]:
    """Return what is shown of the newest notice with all the words in each context of a person, by the context.

    Notices are what the service itself says, such as answers to commands.
    """
    found: dict[int, Hit] = {}
    for row in list_told(connection, identity_id, words):
        text = "" if row.context_id in found else in_one_line(plain_text_of(row.payload))
        if text and is_in(words, text):
            found[row.context_id] = _hit(row, f"notice-{row.place}", mark(_cut(text, words), words))
    return found


def _hit(row: Any, place: str, parts: Parts) -> Hit:
    return row.created_at, {"place": place, "parts": parts}


def mark(text: str, words: Collection[str]) -> Parts:
    """Return a text in parts, with every place of the words marked."""
    parts: list[tuple[str, bool]] = []
    end = 0
    for begin, stop in _places(text, words):
        if begin >= end:
            parts += [(text[end:begin], False), (text[begin:stop], True)]
            end = stop
    return [{"text": part, "is_hit": is_hit} for part, is_hit in [*parts, (text[end:], False)] if part]


def _excerpt(row: Any, words: Collection[str]) -> Parts:
    """Return the sentence around the first hit, as it reads on the page: without marks of Markdown."""
    text = without_contents(row.text, row.attachments or ()) if row.role == Role.USER else row.text
    window = _window(text if is_in(words, text) else row.text, words)
    plain = in_one_line(_plain(window)) if row.role == Role.ASSISTANT else in_one_line(window)
    shown = plain if _places(plain, words) else in_one_line(window)
    return mark(_cut(shown, words), words)


def _window(text: str, words: Collection[str]) -> str:
    at = _first(text, words)
    return text[max(0, at - _AROUND) : at + _AROUND]


def _cut(text: str, words: Collection[str]) -> str:
    """Return the part of a text around the first hit, from the beginning of its sentence where that is near."""
    at = _first(text, words)
    begin = max((text.rfind(end, 0, at) + len(end) for end in _ENDS if end in text[:at]), default=0)
    if at - begin > _BEFORE:
        space = text.find(" ", at - _BEFORE, at)
        begin = at - _BEFORE if space < 0 else space + 1
    stop = begin + _SHOWN
    if stop < len(text):
        space = text.rfind(" ", at, stop)
        stop = stop if space < 0 else space
    return f"{'…' if begin else ''}{text[begin:stop].strip()}{'…' if stop < len(text) else ''}"


def _plain(markdown: str) -> str:
    from transports.markdown.reading import read_markdown

    return FormattedText(tuple(read_markdown(markdown))).plain


def _first(text: str, words: Collection[str]) -> int:
    return min((begin for begin, _ in _places(text, words)), default=0)


def _places(text: str, words: Collection[str]) -> list[tuple[int, int]]:
    """Return where words stand in a text, from left to right; of those that begin together, the longest first."""
    low = text.lower()
    low = low if len(low) == len(text) else text  # letters that are longer in small
    return sorted(
        {place for word in words for place in _places_of(low, word.lower())}, key=lambda place: (place[0], -place[1])
    )


def _places_of(text: str, word: str) -> Iterator[tuple[int, int]]:
    at = text.find(word)
    while at >= 0:
        yield at, at + len(word)
        at = text.find(word, at + len(word))


PAGE: Final = 50
LONGEST_TITLE: Final = 120  # characters of one that a person gave
LONGEST_SEARCH: Final = 200

_FIRST_WORDS: Final = 60  # characters of a title that is made
_WORD: Final = re.compile(r"\s\S*$")


def find_mine(
    connection: Connection, session: str, *, search: str = "", before: int | None = None, limit: int = PAGE
) -> list[Shown]:
    """Return the conversations of a session as JSON, the newest first."""
    identity = find_identity(connection, Author(NAME, session))
    if identity is None:
        return []
    words = words_of(search)
    rows = list_conversations(connection, identity.id, before, None if words else limit)
    mine = [row for row in rows if is_mine(row.context_keys, session)]
    saying = find_saying(connection, identity.id, words) if words else {}
    told = find_told(connection, identity.id, words) if words else {}
    if words:
        mine = [row for row in mine if is_in(words, _title(row)) or row.id in saying or row.id in told]
    shown = mine[:limit]
    said = read_hits(connection, [saying[row.id] for row in shown if row.id in saying], words)
    return [_show(row, (said.get(row.id), told.get(row.id))) for row in shown]


def _show(row: Any, hits: Iterable[Hit | None]) -> Shown:
    """Return a conversation of the list, with the time of its newest hit, or else of its last message."""
    at, hit = max(filter(None, hits), key=lambda hit: hit[0], default=(row.at, None))
    return {
        "name": row.context_keys.get("thread_id", FIRST),
        "title": _title(row),
        "at": None if at is None else iso(at),
        "place": row.last_message_id,
        "hit": hit,
    }


def rename(connection: Connection, chat: str, title: str) -> bool:
    """Give a chat a title, or with an empty one its first words again; return whether there is such a chat."""
    context_id = find_chat(connection, chat)
    if context_id is None:
        return False
    set_metadata(connection, context_id=context_id, key=TITLE, value=in_one_line(title)[:LONGEST_TITLE] or None)
    return True


def _title(row: Any) -> str:
    given = row.metadata.get(TITLE)
    return given if isinstance(given, str) and given else _first_words(row.said or "", row.files or ())


def _first_words(said: str, files: Sequence[Mapping[str, Any]]) -> str:
    """Return what a conversation began with, in one short line: words, or else the name of a file."""
    words = in_one_line(without_contents(said, files))
    if not words:
        return next((in_one_line(each.get("name") or "") for each in files if each.get("name")), "")
    if len(words) <= _FIRST_WORDS:
        return words
    cut = _WORD.sub("", words[: _FIRST_WORDS + 1])
    return f"{cut if len(cut) <= _FIRST_WORDS else words[:_FIRST_WORDS]}…"


_NO_CONVERSATION: Final = "This conversation is not there, or not any more."
_NO_ANSWER: Final = "This answer is not there, or nothing is kept of how it was made."


def _say(key: str, /, **values: Value) -> FormattedText:
    return say(key, None, **values)


def store_verdict(connection: Connection, chat: str, message_id: int, verdict: str | None, now: datetime) -> bool:
    """Store the rating of an answer in a chat, or with None delete it; return whether there is such an answer."""
    turn_id = find_answered_turn(connection, find_chat(connection, chat), message_id)
    return turn_id is not None and write_feedback(connection, turn_id, Author(NAME, session_in(chat)), verdict, now)


def explain_answer(connection: Connection, chat: str, message_id: int) -> dict[str, Any] | None:
    """Return the explanation of an answer and the address of its turn in the inspector, or None if its turn is gone."""
    from transports.web.markdown import render_formatted

    context_id = find_chat(connection, chat)
    attempt = None if context_id is None else find_attempt(connection, context_id, message_id)
    if context_id is None or attempt is None:
        return None
    steps = read_steps(connection, context_id, turn_ids=[attempt.turn_id])
    sources = read_sources([each.item for each in steps])
    text = explain(_say, attempt, sources, may_see=True, is_last=False)
    inspected = f"/inspect/t/{attempt.turn_id}"
    return {"text": text.plain, "html": "".join(render_formatted(text)), "inspect": inspected}


class Conversations:
    """The endpoints next to the chat's own."""

    def __init__(self, hub: Hub, backend: Backend, commands: Iterable[Command]) -> None:
        self._hub = hub
        self._backend = backend
        self._commands = [{"name": each.name, "about": each.description(None)} for each in commands if each.is_listed]

    async def list_mine(self, request: Request) -> Response:
        """Answer with the conversations of the session."""
        session, search = session_of_request(request), request.query_params.get("search", "")[:LONGEST_SEARCH]
        below = request.query_params.get("before")
        before = None if below is None else row_number(below, "before")

        def find(connection: Connection) -> list[Shown]:
            return find_mine(connection, session, search=search, before=before, limit=PAGE + 1)

        found = await self._backend.storage.read(find)
        return _json({"conversations": found[:PAGE], "has_more": len(found) > PAGE})

    async def rename(self, request: Request) -> Response:
        """Give a conversation a title."""
        fields = await read_fields(request)
        chat, title = chat_of_fields(request, fields), parse_text(fields, "title") or ""
        if not await self._backend.storage.write(lambda connection: rename(connection, chat, title)):
            raise HTTPException(404, _NO_CONVERSATION)
        return _json({"ok": True})

    async def delete(self, request: Request) -> Response:
        """Forget a conversation with all that came of it."""
        chat, storage = chat_of_fields(request, await read_fields(request)), self._backend.storage
        context_id = await storage.read(lambda connection: find_chat(connection, chat))
        if context_id is None:
            raise HTTPException(404, _NO_CONVERSATION)
        await forget_chat(storage, context_id)
        self._hub.note_stored(chat)
        return _json({"ok": True})

    async def post_feedback(self, request: Request) -> Response:
        """Store a rating of an answer."""
        fields = await read_fields(request)
        chat, message_id = chat_of_fields(request, fields), row_number(fields.get("message"), "message")
        verdict = parse_text(fields, "verdict")
        if verdict is not None and verdict not in VERDICTS:
            raise HTTPException(400, '"verdict" must be "good", "bad" or null.')
        storage, now = self._backend.storage, self._backend.storage.now()
        if not await storage.write(lambda connection: store_verdict(connection, chat, message_id, verdict, now)):
            raise HTTPException(404, _NO_ANSWER)
        return _json({"ok": True})

    async def why(self, request: Request) -> Response:
        """Answer with what an answer was made of."""
        chat = chat_of_request(request)
        message_id = row_number(request.query_params.get("message", ""), "message")
        shown = await self._backend.storage.read(lambda connection: explain_answer(connection, chat, message_id))
        if shown is None:
            raise HTTPException(404, _NO_ANSWER)
        return _json(shown if browser_of(request) is None else {**shown, "inspect": None})

    async def list_commands(self, request: Request) -> Response:  # noqa: ARG002 - an endpoint
        """Answer with the commands that this agent offers."""
        return _json({"commands": self._commands})


def _json(values: Mapping[str, Any]) -> Response:
    return JSONResponse(values, headers=HEADERS)
