"""/memory: showing, correcting, sharing and deleting what is known of a person, and the notes of a chat."""

import re
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from botservice.commands.command import Asker, Command, find_asker
from botservice.core.formatted_text import FormattedText, Span
from botservice.core.messages import Button
from botservice.core.quoting import shortened
from botservice.history.note_queries import delete_note, read_notes
from botservice.history.notes import StoredNote
from botservice.history.queries import authors_of
from botservice.people.fact_queries import correct_fact, delete_facts, facts_of, share_fact
from botservice.people.facts import MAX_TEXT, Fact
from botservice.people.names import transport_of
from botservice.people.queries import identities_of
from botservice.privacy.cleaning import clean_and_scrub
from botservice.privacy.queries import contexts_of
from botservice.privacy.record_queries import queue_texts
from botservice.privacy.right_queries import drop_exports, drop_exports_of
from botservice.storage.database import Connection
from botservice.texts.formatted import Value, below, bulleted, line, quoted
from botservice.turns.commands import CommandAnswer, CommandRequest

_MOST_BUTTONS: Final = 8
_LONGEST_SAID: Final = 80  # characters of the message that a fact came from
_ORDER: Final = re.compile(r"(delete|correct|share|unshare)\s+#?(\d{1,18})(?:\s+(.+))?", re.IGNORECASE | re.DOTALL)
_NOTE_ORDER: Final = re.compile(r"delete\s+n(\d{1,18})", re.IGNORECASE)


async def _memory(request: CommandRequest) -> CommandAnswer:
    asker = await find_asker(request)
    # Where others listen, only what may be told there can be seen or changed: the answer would tell the rest.
    visible_in = None if asker.is_alone else request.context.id
    known = await request.context.storage.read(
        lambda connection: facts_of(connection, asker.person_id, context_id=visible_in, with_ended=True)
    )
    if (note_order := _NOTE_ORDER.fullmatch(request.call.arguments.strip())) is not None:
        return await delete_asked_note(int(note_order[1]), asker, request)
    order = _ORDER.fullmatch(request.call.arguments.strip())
    if order is None:
        return await _list(known, asker, request)
    number = int(order[2])
    is_deleting = order[1].lower() == "delete"
    fact = next((each for each in known if each.id == number and (each.is_current or is_deleting)), None)
    if fact is None:
        return CommandAnswer(request.say("memory.unknown", number=str(number)))
    return _obey(order[1].lower(), fact, (order[3] or "").strip()[:MAX_TEXT], asker, request)


def _obey(order: str, fact: Fact, words: str, asker: Asker, request: CommandRequest) -> CommandAnswer:
    person, number, now = asker.person_id, str(fact.id), request.now
    match order:
        case "delete":
            said = request.say("memory.deleted", number=number)
            return _erase(said, lambda c: delete_facts(c, person, [fact.id], now), person, request)
        case "share" | "unshare":
            sharing = partial(share_fact, person_id=person, fact_id=fact.id, is_shareable=order == "share")
            key = "memory.sharing" if order == "share" else "memory.unsharing"
            return CommandAnswer(request.say(key, number=number), apply=sharing)
        case _ if not words:
            return CommandAnswer(request.say("memory.how", number=number))
        case _:

            def correct(connection: Connection) -> list[str]:
                return [fact.text] if correct_fact(connection, person, fact.id, words, now) else []

            said = request.say("memory.changed", number=number, text=words)
            return _erase(said, correct, person, request)


def _erase(
    said: FormattedText, change: Callable[[Connection], list[str]], person_id: int, request: CommandRequest
) -> CommandAnswer:
    """Return an answer whose change erases texts of facts, also from the records of the person's chats."""

    def apply(connection: Connection) -> None:
        authors = [each.author for each in identities_of(connection, person_id)]
        drop_exports_of(connection, person_id, request.now)
        queue_texts(connection, contexts_of(connection, authors), change(connection), request.now)

    return CommandAnswer(said, apply=apply, after=partial(clean_and_scrub, request.context.storage, request.claim))


async def _list(known: list[Fact], asker: Asker, request: CommandRequest) -> CommandAnswer:
    lines = [_line(each, request) for each in known]
    if lines:
        parts = [request.say("memory.list"), bulleted(lines)]
        parts.append(request.say("memory.how", number=known[-1].id))
    else:
        key = "memory.nothing" if request.has_tool("remember") else "memory.empty"
        parts = [request.say(key if asker.is_alone else "memory.nothing_here")]
    parts += await list_notes(request)
    if not asker.is_alone:
        parts.append(request.say("memory.elsewhere"))
    buttons = [
        Button(request.label("memory.delete_button", number=each.id), f"/memory delete {each.id}")
        for each in [each for each in known if each.is_current][-_MOST_BUTTONS:]
    ]
    return CommandAnswer(below(*parts), tuple(buttons))


def _line(fact: Fact, request: CommandRequest) -> FormattedText:
    date = request.say_date(fact.since)
    if fact.said is None:
        source = request.say("memory.corrected", date=date)
    else:
        said = quoted(shortened(" ".join(fact.said.split()), _LONGEST_SAID))
        where = transport_of(fact.context_keys or {}, "API").capitalize()
        source = request.say("memory.source", said=said, date=date, where=where)
    more: list[Value] = []
    if fact.until is not None:
        more += ["; ", request.say("memory.until", date=request.say_date(fact.until))]
    if fact.is_shareable:
        more += ["; ", request.say("memory.shared")]
    topic: list[Value] = [quoted(fact.shown_topic), ": "] if fact.shown_topic else []
    return line(Span(f"#{fact.id}", bold=True), " ", *topic, quoted(fact.text), " (", source, *more, ")")


MEMORY: Final = Command("memory", _memory, is_personal=True)


async def list_notes(request: CommandRequest) -> list[FormattedText]:
    """Return the parts of an answer that list the notes of its chat, or none if there are none."""
    context_id = request.context.id
    found = await request.context.storage.read(lambda connection: read_notes(connection, context_id))
    if not found:
        return []
    how = request.say("memory.note_how", number=found[-1].note.number)
    return [request.say("memory.notes"), bulleted(_note_line(each, request) for each in found), how]


async def delete_asked_note(number: int, asker: Asker, request: CommandRequest) -> CommandAnswer:
    """Delete a note and return the answer; in a group, it must have come from the asker's own words."""
    context_id = request.context.id
    may = await request.context.storage.read(lambda connection: _may_delete(connection, context_id, number, asker))
    if not may:
        return CommandAnswer(request.say("memory.unknown_note", number=str(number)))
    return CommandAnswer(
        request.say("memory.note_deleted", number=str(number)),
        apply=lambda connection: erase_note(connection, context_id, number, request.now),
        after=partial(clean_and_scrub, request.context.storage, request.claim),
    )


def erase_note(connection: Connection, context_id: int, number: int, now: datetime) -> None:
    """Delete a note of a chat, also from the record of the agent's work: see `clean_and_scrub`."""
    drop_exports(connection, context_id, now)
    text = delete_note(connection, context_id, number)
    if text is not None:
        queue_texts(connection, [context_id], [text], now)


def _may_delete(connection: Connection, context_id: int, number: int, asker: Asker) -> bool:
    note = next((each.note for each in read_notes(connection, context_id) if each.note.number == number), None)
    if note is None or asker.is_alone:
        return note is not None
    own = {(each.platform, each.platform_id) for each in identities_of(connection, asker.person_id)}
    return not own.isdisjoint(authors_of(connection, context_id, note.message_ids))


def _note_line(stored: StoredNote, request: CommandRequest) -> FormattedText:
    note = stored.note
    shown = request.say("memory.note", text=quoted(note.text), date=request.say_date(note.at))
    return line(Span(f"N{note.number}", bold=True), " ", shown)
