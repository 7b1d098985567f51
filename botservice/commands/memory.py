"""/memory: what is known of a person, and their say in it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import Connection

from botservice.commands import memory_texts as texts
from botservice.commands.asking import Asker, find_asker
from botservice.commands.command import Command, Texts, in_language
from botservice.messages import Button
from botservice.people.exports import drop_exports_of
from botservice.people.facts import MAX_TEXT, Fact, correct_fact, delete_facts, facts_of, share_fact
from botservice.people.identities import identities_of
from botservice.people.quotes import erase_quotes
from botservice.quoting import show_plain
from botservice.turns.commands import CommandAnswer, CommandRequest

Change = Callable[[Connection], None]

_MOST_BUTTONS: Final = 8
_LONGEST_SAID: Final = 80  # characters of the message that a fact came from
_ORDER: Final = re.compile(r"(delete|correct|share|unshare)\s+#?(\d{1,18})(?:\s+(.+))?", re.IGNORECASE | re.DOTALL)


async def _memory(request: CommandRequest) -> CommandAnswer:
    asker = await find_asker(request)
    if asker is None:
        return CommandAnswer(in_language(texts.NOBODY, request.language))
    # Where others listen, only what may be told there can be seen or changed: the answer would tell the rest.
    visible_in = None if asker.is_alone else request.context.id
    known = await request.context.storage.read(
        lambda connection: facts_of(connection, asker.person_id, context_id=visible_in)
    )
    order = _ORDER.fullmatch(request.call.arguments.strip())
    if order is None:
        return _list(known, asker, request.language)
    number = int(order[2])
    fact = next((each for each in known if each.id == number), None)
    if fact is None:
        return _say(texts.UNKNOWN, request, number=str(number))
    return _obey(order[1].lower(), fact, (order[3] or "").strip()[:MAX_TEXT], asker, request)


def _obey(order: str, fact: Fact, words: str, asker: Asker, request: CommandRequest) -> CommandAnswer:
    person, number = asker.person_id, str(fact.id)
    match order:
        case "delete":
            deleted = _say(texts.DELETED, request, number=number, apply=lambda c: _delete(c, person, fact, request.now))
            return _scrubbing(deleted, request)
        case "share":
            return _say(
                texts.SHARING, request, number=number, apply=lambda c: _share(c, person, fact, is_shareable=True)
            )
        case "unshare":
            return _say(
                texts.UNSHARING, request, number=number, apply=lambda c: _share(c, person, fact, is_shareable=False)
            )
        case _ if not words:
            return _say(texts.HOW, request, number=number)
        case _:
            change = partial(_correct, person_id=person, fact=fact, words=words, request=request)
            return _scrubbing(_say(texts.CHANGED, request, number=number, text=words, apply=change), request)


def _list(known: list[Fact], asker: Asker, language: str) -> CommandAnswer:
    lines = [_line(each, language) for each in known]
    if lines:
        parts = [in_language(texts.LIST, language), "\n".join(lines)]
        parts.append(in_language(texts.HOW, language).format(number=known[-1].id))
    else:
        parts = [in_language(texts.NOTHING if asker.is_alone else texts.NOTHING_HERE, language)]
    if not asker.is_alone:
        parts.append(in_language(texts.ELSEWHERE, language))
    delete = in_language(texts.DELETE_BUTTON, language)
    buttons = [Button(delete.format(number=each.id), f"/memory delete {each.id}") for each in known[-_MOST_BUTTONS:]]
    return CommandAnswer("\n\n".join(parts), tuple(buttons))


def _line(fact: Fact, language: str) -> str:
    date = f"{fact.updated_at:%Y-%m-%d}"
    if fact.said is None:
        source = in_language(texts.CORRECTED, language).format(date=date)
    else:
        said = " ".join(fact.said.split())
        said = said if len(said) <= _LONGEST_SAID else f"{said[:_LONGEST_SAID]}…"
        source = in_language(texts.SOURCE, language).format(
            said=show_plain(said), date=date, where=_where(fact.context_keys or {})
        )
    shared = f"; {in_language(texts.SHARED, language)}" if fact.is_shareable else ""
    topic = f"{show_plain(fact.shown_topic)}: " if fact.shown_topic else ""
    return f"- **#{fact.id}** {topic}{show_plain(fact.text)} ({source}{shared})"


def _where(keys: Mapping[str, str]) -> str:
    return keys.get("transport", "API").capitalize()


def _say(wording: Texts, request: CommandRequest, /, *, apply: Change | None = None, **values: str) -> CommandAnswer:
    return CommandAnswer(in_language(wording, request.language).format(**values), apply=apply)


def _scrubbing(answer: CommandAnswer, request: CommandRequest) -> CommandAnswer:
    """Return an answer after which what was deleted for it leaves the files as well."""
    return replace(answer, after=request.context.storage.scrub)


def _delete(connection: Connection, person_id: int, fact: Fact, now: datetime) -> None:
    authors = [each.author for each in identities_of(connection, person_id)]
    drop_exports_of(connection, person_id, now)
    for text in delete_facts(connection, person_id, [fact.id]):
        erase_quotes(connection, authors, text)


def _correct(connection: Connection, person_id: int, fact: Fact, words: str, request: CommandRequest) -> None:
    drop_exports_of(connection, person_id, request.now)
    if correct_fact(connection, person_id, fact.id, words, request.now):
        erase_quotes(connection, [each.author for each in identities_of(connection, person_id)], fact.text)


def _share(connection: Connection, person_id: int, fact: Fact, *, is_shareable: bool) -> None:
    share_fact(connection, person_id, fact.id, is_shareable=is_shareable)


MEMORY: Final = Command("memory", texts.MENU, _memory)
