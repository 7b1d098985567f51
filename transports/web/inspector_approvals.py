"""The page of the inspector that lists decided approvals."""

import json
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from botservice.core.visible_text import visible
from botservice.turns.ledger_queries import LedgerEntry, list_approvals
from transports.web.inspector_desk import Desk
from transports.web.inspector_lists import PAGE, address

_MOST_DIGITS: Final = 18


class ApprovalsPage:
    """The endpoint of the page."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, request: Request) -> Response:
        """Answer with decided approvals, the newest first."""
        asked = request.query_params.get("after", "")
        before = int(asked) if asked.isascii() and asked.isdigit() and len(asked) <= _MOST_DIGITS else None
        found = await self._desk.storage.read(
            lambda connection: list_approvals(connection, before=before, limit=PAGE + 1), is_long=True
        )
        shown = found[:PAGE]
        response = self._desk.pages.show(
            "inspect_approvals.html",
            approvals=[(each, _arguments(each)) for each in shown],
            older=address("/inspect/approvals", {}, after=str(shown[-1].call)) if len(found) > PAGE else "",
            is_first=before is None,
        )
        return self._desk.follow(request, response)


def _arguments(entry: LedgerEntry) -> str:
    return visible(json.dumps(json.loads(entry.arguments), ensure_ascii=False), is_code=True)
