"""The lists of the inspector: conversations, turns of all of them, those of one, and decided approvals."""

import json
import re
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, date, datetime, time, timedelta
from enum import StrEnum
from typing import Any, Final, TypeVar
from urllib.parse import urlencode

from starlette.datastructures import QueryParams
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from botservice.conversation.pausing import Pause, read_pause
from botservice.core.messages import storable
from botservice.core.visible_text import visible
from botservice.devtools.conversations import list_contexts
from botservice.devtools.queries import find_context_of
from botservice.devtools.turn_queries import (
    LOOKED_AT,
    FoundPage,
    PageCursor,
    Rating,
    State,
    TurnFilter,
    TurnOrder,
    find_turns,
)
from botservice.history.note_queries import read_notes
from botservice.storage.database import Connection
from botservice.transport_plugins import platform_labels
from botservice.turns.approval_queries import LedgerEntry, list_approvals
from botservice.turns.call_queries import find_waiting
from transports.web.inspector_site import NO_CONVERSATION, NO_TURN, InspectorSite, show_seconds
from transports.web.inspector_steps import show_text
from transports.web.inspector_turn_lines import (
    ChatTitle,
    TurnLine,
    read_last_messages,
    read_titles,
    read_turn_lines,
    show_waiting,
)
from transports.web.pages import HEADERS
from transports.web.requests import path_number

_CURSOR: Final = re.compile(r"(\d{1,18})-(\d{1,18})")
_LONGEST: Final = 200  # characters of what is looked for
_TEXTS: Final = ("text", "person", "platform", "model", "tool")

E = TypeVar("E", bound=StrEnum)

PAGE: Final = 50
_TURNS: Final = "turns"


def read_filter(query: QueryParams, context_id: int | None = None) -> TurnFilter:
    """Return what is looked for; what makes no sense is as if it was not there."""
    until = _day(query.get("until", ""))
    return TurnFilter(
        **{name: storable(query.get(name, "").strip()[:_LONGEST]).replace("\0", "") for name in _TEXTS},
        state=_one_of(State, query.get("state")) or State.ASKED,
        rating=_one_of(Rating, query.get("rating")),
        since=_day(query.get("since", "")),
        until=None if until is None else until + timedelta(days=1),  # both days are meant
        order=_one_of(TurnOrder, query.get("order")) or TurnOrder.NEWEST,
        context_id=context_id,
    )


def read_cursor(query: QueryParams) -> PageCursor | None:
    """Return where the page begins; None for the beginning."""
    found = _CURSOR.fullmatch(query.get("after", ""))
    return None if found is None or not found[0].isascii() else PageCursor(int(found[1]), int(found[2]))


def write_cursor(value: int, number: int) -> str:
    """Return where a page begins, for its address."""
    return f"{value}-{number}"


def filter_values(sought: TurnFilter) -> dict[str, str]:
    """Return what is looked for as the address has it; what is looked for by default is not in it."""
    plain = TurnFilter()
    values = {each.name: getattr(sought, each.name) for each in fields(sought) if each.name != "context_id"}
    shown = {name: _show(name, value) for name, value in values.items() if value != getattr(plain, name)}
    return {name: value for name, value in shown.items() if value}


def address(path: str, values: Mapping[str, str], **others: str | None) -> str:
    """Return an address with what is asked for."""
    asked = {name: value for name, value in {**values, **others}.items() if value}
    return f"{path}?{urlencode(asked)}" if asked else path


def _show(name: str, value: object) -> str:
    if isinstance(value, datetime):
        return f"{value - timedelta(days=1) if name == 'until' else value:%Y-%m-%d}"
    return "" if value is None else str(value)


def _day(text: str) -> datetime | None:
    try:
        found = datetime.combine(date.fromisoformat(text), time(), UTC)
    except ValueError:
        return None
    return found if len(text) == 10 and 1970 < found.year < 3000 else None


def _one_of(kind: type[E], text: str | None) -> E | None:
    return kind(text) if text in {each.value for each in kind} else None


class Inspector:
    """The endpoints of the lists."""

    def __init__(self, site: InspectorSite) -> None:
        self._site = site

    async def show_lists(self, request: Request) -> Response:
        """Answer with conversations; with turns where something is looked for."""
        sought = read_filter(request.query_params)
        if request.query_params.get("view") == _TURNS or filter_values(sought):
            return await self._show_turns(request, sought)
        return await self._list_contexts(request)

    async def show_context(self, request: Request) -> Response:
        """Answer with the notes of a conversation and its turns, the newest first."""
        context_id = path_number(request, "context")
        sought = read_filter(request.query_params, context_id)
        after, storage = read_cursor(request.query_params), self._site.storage

        def query(connection: Connection) -> tuple[ChatTitle | None, list[TurnLine], FoundPage, Pause | None]:
            title = read_titles(connection, [context_id]).get(context_id)
            page = find_turns(connection, sought, limit=PAGE, after=after)
            pause = read_pause(connection, context_id, storage.now())
            return title, read_turn_lines(connection, page.found), page, pause

        title, lines, page, pause = await storage.read(query, is_long=True)
        if title is None:
            raise HTTPException(404, NO_CONVERSATION)
        noted = await storage.read(lambda connection: read_notes(connection, context_id))
        return self._site.show(
            request,
            "inspect_context.html",
            context_id=context_id,
            title=title,
            pause=pause,
            notes=[(each.note, show_text(each.note.text)) for each in noted] if after is None else [],
            **self._list(f"/inspect/{context_id}", sought, lines, page),
        )

    async def find_turn(self, request: Request) -> Response:
        """Lead to a turn by its number alone: an address that stays right when its conversation moves."""
        turn_id = path_number(request, "turn")
        context_id = await self._site.storage.read(lambda connection: find_context_of(connection, turn_id))
        if context_id is None:
            raise HTTPException(404, NO_TURN)
        return RedirectResponse(f"/inspect/{context_id}/{turn_id}", status_code=303, headers=HEADERS)

    async def _list_contexts(self, request: Request) -> Response:
        storage, after = self._site.storage, read_cursor(request.query_params)
        found = await list_contexts(
            storage, limit=PAGE + 1, after=None if after is None else (after.value, after.turn_id)
        )
        shown = found[:PAGE]
        cursor = write_cursor(shown[-1].last_message_id, shown[-1].id) if len(found) > PAGE else None

        def query(connection: Connection) -> tuple[dict[int, str], dict[int, ChatTitle]]:
            last = read_last_messages(connection, [each.last_message_id for each in shown])
            ids = {each.id for each in shown} | {each.context_id for each in waiting[:PAGE]}
            return last, read_titles(connection, list(ids))

        waiting = await storage.read(find_waiting, is_long=True) if after is None else []
        last, titles = await storage.read(query, is_long=True)
        return self._site.show(
            request,
            "inspect_contexts.html",
            waiting=show_waiting(waiting[:PAGE]),
            more_waiting=len(waiting[PAGE:]),
            titles={context_id: title.text for context_id, title in titles.items()},
            contexts=[(each, titles[each.id], last.get(each.id, "")) for each in shown if each.id in titles],
            older=None if cursor is None else address("/inspect", {}, after=cursor),
            is_first=after is None,
            **self._form("/inspect", TurnFilter()),
        )

    async def _show_turns(self, request: Request, sought: TurnFilter) -> Response:
        after = read_cursor(request.query_params)

        def query(connection: Connection) -> tuple[list[TurnLine], FoundPage]:
            page = find_turns(connection, sought, limit=PAGE, after=after)
            return read_turn_lines(connection, page.found), page

        lines, page = await self._site.storage.read(query, is_long=True)
        values = self._list("/inspect", sought, lines, page)
        return self._site.show(request, "inspect_turns.html", is_first=after is None, **values)

    def _list(self, path: str, sought: TurnFilter, lines: list[TurnLine], page: FoundPage) -> dict[str, Any]:
        """Return what the table of turns shows."""
        values = filter_values(sought) | ({"view": _TURNS} if sought.context_id is None else {})
        rest = None if page.rest is None else write_cursor(page.rest.value, page.rest.turn_id)
        return {
            "turns": lines,
            "older": None if rest is None else address(path, values, after=rest),
            "is_full": page.is_full,
            "looked_at": LOOKED_AT,
            "show_seconds": show_seconds,
            "money": self._site.money,
            **self._form(path, sought),
        }

    def _form(self, path: str, sought: TurnFilter) -> dict[str, Any]:
        """Return what the form shows that filters."""
        return {
            "path": path,
            "sought": filter_values(sought),
            "states": list(State),
            "orders": list(TurnOrder),
            "platforms": platform_labels(),
        }

    async def show_approvals(self, request: Request) -> Response:
        """Answer with decided approvals, the newest first."""
        after = read_cursor(request.query_params)
        before = None if after is None else after.turn_id
        found = await self._site.storage.read(
            lambda connection: list_approvals(connection, before=before, limit=PAGE + 1), is_long=True
        )
        shown = found[:PAGE]
        rest = write_cursor(0, shown[-1].call) if len(found) > PAGE else None
        return self._site.show(
            request,
            "inspect_approvals.html",
            approvals=[(each, _arguments(each)) for each in shown],
            older=rest and address("/inspect/approvals", {}, after=rest),
            is_first=after is None,
        )


def _arguments(entry: LedgerEntry) -> str:
    return visible(json.dumps(json.loads(entry.arguments), ensure_ascii=False), is_code=True)
