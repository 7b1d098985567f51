"""Canvases and lists that people share: documents that Slack itself keeps, read as text through its own methods."""

import csv
import io
import logging
from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from botservice.core.messages import Attachment
from transports.slack.client import SlackClient, SlackFailure
from transports.slack.inbound_events import field, items_of
from transports.slack.refusals import Feature, SlackRefusals
from transports.slack.workspaces import Workspace

logger = logging.getLogger(__name__)

_PAGE: Final = 100
_MAX_PAGES: Final = 5
_MAX_COLUMNS: Final = 20


class DocumentKind(StrEnum):
    """What Slack keeps as a file of its own kind."""

    CANVAS = "canvas"
    LIST = "list"


# Canvases came of what was called Quip, and files still say so. Source: docs.slack.dev, reference/objects/file-object.
_KINDS: Final = {
    "canvas": DocumentKind.CANVAS,
    "quip": DocumentKind.CANVAS,
    "application/vnd.slack-docs": DocumentKind.CANVAS,
    "list": DocumentKind.LIST,
    "application/vnd.slack-list": DocumentKind.LIST,
}


def kind_of(file: Mapping[str, Any]) -> DocumentKind | None:
    """Return what kind of Slack's own documents a file is; None for any other file."""
    names = (field(file, name) for name in ("filetype", "mode", "mimetype"))
    return next((_KINDS[name] for name in names if isinstance(name, str) and name in _KINDS), None)


class SharedDocuments:
    """Reads them, where the app may."""

    def __init__(self, client: SlackClient, refusals: SlackRefusals) -> None:
        self._client = client
        self._refusals = refusals

    async def read(self, workspace: Workspace, kind: DocumentKind, file_id: str, name: str | None) -> Attachment | None:
        """Return a document as text, or None if the app may not read it, or it is gone."""
        feature = Feature.CANVASES if kind is DocumentKind.CANVAS else Feature.LISTS
        if not await self._refusals.takes(workspace.team_id, feature):
            return None
        try:
            if kind is DocumentKind.CANVAS:
                return Attachment("text/markdown", name, (await self._canvas(workspace, file_id)).encode())
            return Attachment("text/csv", name, (await self._list(workspace, file_id)).encode())
        except SlackFailure as failure:
            logger.info("slack.paper_not_read", extra={"reason": failure.code})
            if failure.is_not_here and not failure.is_about_arguments:  # those name one document
                await self._refusals.note(workspace.team_id, feature, failure)
            return None

    async def _canvas(self, workspace: Workspace, canvas_id: str) -> str:
        answer = await self._client.call(
            workspace.token, "canvases.getContent", canvas_id=canvas_id, content_type="markdown"
        )
        content = field(answer, "content")
        return content if isinstance(content, str) else ""

    async def _list(self, workspace: Workspace, list_id: str) -> str:
        rows: list[dict[str, str]] = []
        cursor: str | None = None
        for _ in range(_MAX_PAGES):
            answer = await self._client.call(
                workspace.token, "slackLists.items.list", list_id=list_id, limit=_PAGE, cursor=cursor
            )
            rows += [dict(_cells(each)) for each in items_of(answer, "items")]
            cursor = field(answer, "response_metadata", "next_cursor")
            if not isinstance(cursor, str) or not cursor:
                break
        return _as_csv(rows)


def _cells(item: object) -> Iterator[tuple[str, str]]:
    """Yield the names and the texts of an item's fields."""
    for each in items_of(item, "fields"):
        name = next((given for key in ("key", "column_id") if isinstance(given := field(each, key), str)), None)
        text, value = field(each, "text"), field(each, "value")
        said = text if isinstance(text, str) and text else value
        if name is not None and isinstance(said, str | int | float):
            yield name, str(said)


def _as_csv(rows: list[dict[str, str]]) -> str:
    names = list(dict.fromkeys(name for row in rows for name in row))[:_MAX_COLUMNS]
    out = io.StringIO()
    writer = csv.DictWriter(out, names, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()
