"""/memory: showing, correcting, sharing and deleting what is known of a person."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import Connection

from botservice.commands.asker import Asker, find_asker
from botservice.commands.command import Command
from botservice.commands.notes import delete_asked_note, list_notes
from botservice.messages import Button
from botservice.people.facts import MAX_TEXT, Fact, correct_fact, delete_facts, facts_of, share_fact, texts_going
from botservice.people.identities import identities_of
from botservice.privacy.exports import drop_exports_of
from botservice.privacy.records import Cleared, clear_quotes, erase_quotes
from botservice.quoting import shortened, show_plain
from botservice.turns.start.commands import CommandAnswer, CommandRequest

Change = Callable[[Connection], object]

_MOST_BUTTONS: Final = 8
_LONGEST_SAID: Final = 80  # characters of the message that a fact came from
_ORDER: Final = re.compile(r"(delete|correct|share|unshare)\s+#?(\d{1,18})(?:\s+(.+))?", re.IGNORECASE | re.DOTALL)
_NOTE_ORDER: Final = re.compile(r"delete\s+n(\d{1,18})", re.IGNORECASE)


async def _memory(request: CommandRequest) -> CommandAnswer:
    asker = await find_asker(request)
    if asker is None:
        return CommandAnswer(request.say("memory.nobody"))
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
        return _say("memory.unknown", request, number=str(number))
    return await _obey(order[1].lower(), fact, (order[3] or "").strip()[:MAX_TEXT], asker, request)


async def _obey(order: str, fact: Fact, words: str, asker: Asker, request: CommandRequest) -> CommandAnswer:
    person, number = asker.person_id, str(fact.id)
    match order:
        case "delete":
            texts = await request.context.storage.read(lambda c: texts_going(c, person, [fact.id]))
            cleared = await _clear(person, texts, request)
            deletion = partial(_delete, person_id=person, fact=fact, cleared=cleared, now=request.now)
            return _scrubbing(_say("memory.deleted", request, number=number, apply=deletion), request)
        case "share" | "unshare":
            sharing = partial(share_fact, person_id=person, fact_id=fact.id, is_shareable=order == "share")
            key = "memory.sharing" if order == "share" else "memory.unsharing"
            return _say(key, request, number=number, apply=sharing)
        case _ if not words:
            return _say("memory.how", request, number=number)
        case _:
            cleared = await _clear(person, [fact.text], request)
            change = partial(_correct, person_id=person, fact=fact, words=words, cleared=cleared, now=request.now)
            return _scrubbing(_say("memory.changed", request, number=number, text=words, apply=change), request)


async def _list(known: list[Fact], asker: Asker, request: CommandRequest) -> CommandAnswer:
    lines = [_line(each, request) for each in known]
    if lines:
        parts = [request.say("memory.list"), "\n".join(lines)]
        parts.append(request.say("memory.how", number=known[-1].id))
    else:
        key = "memory.nothing" if request.has_tool("remember") else "memory.empty"
        parts = [request.say(key if asker.is_alone else "memory.nothing_here")]
    parts += await list_notes(request)
    if not asker.is_alone:
        parts.append(request.say("memory.elsewhere"))
    buttons = [
        Button(request.say("memory.delete_button", number=each.id), f"/memory delete {each.id}")
        for each in [each for each in known if each.is_current][-_MOST_BUTTONS:]
    ]
    return CommandAnswer("\n\n".join(parts), tuple(buttons))


def _line(fact: Fact, request: CommandRequest) -> str:
    date = f"{fact.since:%Y-%m-%d}"
    if fact.said is None:
        source = request.say("memory.corrected", date=date)
    else:
        said = show_plain(shortened(" ".join(fact.said.split()), _LONGEST_SAID))
        where = (fact.context_keys or {}).get("transport", "API").capitalize()
        source = request.say("memory.source", said=said, date=date, where=where)
    shared = "; " + request.say("memory.shared") if fact.is_shareable else ""
    if fact.until is not None:
        shared = "; " + request.say("memory.until", date=f"{fact.until:%Y-%m-%d}") + shared
    topic = f"{show_plain(fact.shown_topic)}: " if fact.shown_topic else ""
    return f"- **#{fact.id}** {topic}{show_plain(fact.text)} ({source}{shared})"


def _say(key: str, request: CommandRequest, /, *, apply: Change | None = None, **values: str) -> CommandAnswer:
    return CommandAnswer(request.say(key, **values), apply=apply)


def _scrubbing(answer: CommandAnswer, request: CommandRequest) -> CommandAnswer:
    """Return an answer after which the bytes of what was deleted are overwritten."""
    return replace(answer, after=request.context.storage.scrub)


async def _clear(person_id: int, texts: Collection[str], request: CommandRequest) -> Mapping[int, Cleared]:
    """Remove texts from the records of a person's chats, so that the final transaction only looks at newer ones."""
    storage = request.context.storage
    accounts = await storage.read(lambda connection: identities_of(connection, person_id))
    return await clear_quotes(storage, [each.author for each in accounts], texts)


def _delete(connection: Connection, person_id: int, fact: Fact, cleared: Mapping[int, Cleared], now: datetime) -> None:
    authors = [each.author for each in identities_of(connection, person_id)]
    drop_exports_of(connection, person_id, now)
    for text in delete_facts(connection, person_id, [fact.id], now):
        erase_quotes(connection, authors, text, cleared)


def _correct(
    connection: Connection, person_id: int, fact: Fact, words: str, cleared: Mapping[int, Cleared], now: datetime
) -> None:
    drop_exports_of(connection, person_id, now)
    if correct_fact(connection, person_id, fact.id, words, now):
        erase_quotes(connection, [each.author for each in identities_of(connection, person_id)], fact.text, cleared)


MEMORY: Final = Command("memory", _memory, is_personal=True)
