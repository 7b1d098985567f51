"""The files that people send: fetched within limits, and what cannot be fetched is said in words."""

import csv
import io
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from botservice.core.messages import Attachment
from transports.common.documents import (
    ExtractedFiles,
    ExtractionAttempt,
    FetchedFile,
    FileText,
    SentFile,
    read_document,
    read_files,
)
from transports.common.json_fields import field, items_of
from transports.slack.client import SlackFailure
from transports.slack.context import SlackContext
from transports.slack.inbound_events import word
from transports.slack.refusals import Feature
from transports.slack.workspaces import Workspace

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


async def _read_canvas(workspace: Workspace, canvas_id: str) -> str:
    answer = await workspace.call("canvases.getContent", canvas_id=canvas_id, content_type="markdown")
    content = field(answer, "content")
    return content if isinstance(content, str) else ""


async def _read_list(workspace: Workspace, list_id: str) -> str:
    """Return the items of a list as CSV."""
    rows: list[dict[str, str]] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        answer = await workspace.call("slackLists.items.list", list_id=list_id, limit=_PAGE, cursor=cursor)
        rows += [dict(_cells(each)) for each in items_of(answer, "items")]
        cursor = field(answer, "response_metadata", "next_cursor")
        if not isinstance(cursor, str) or not cursor:
            break
    return _as_csv(rows)


# How each kind is read, as what, and the feature that a workspace may refuse.
_READERS: Final = {
    DocumentKind.CANVAS: (_read_canvas, "text/markdown", Feature.CANVASES),
    DocumentKind.LIST: (_read_list, "text/csv", Feature.LISTS),
}


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


SLACK_FILE_BYTES: Final = 20 * 1024 * 1024
logger = logging.getLogger(__name__)

_MAX_FILES = 20
_TOO_LARGE = f"too large to fetch; the limit is {SLACK_FILE_BYTES // 1024**2} MB"
_NAMES = {"image": "picture", "audio": "audio", "video": "video"}
_SLACK_HOSTS = ("slack.com", "slack-files.com", "slack-gov.com")


@dataclass(frozen=True, slots=True)
class SlackFile(SentFile):
    """A file that came with a message, not fetched yet.

    Attributes:
        url: Where it lies; only Slack itself is ever asked with the token.
    """

    url: str | None = None
    must_be_asked_for: bool = False
    document: DocumentKind | None = None


class SlackFiles:
    """Fetches what came with a message."""

    def __init__(self, slack: SlackContext) -> None:
        self._slack = slack
        self._refusals = slack.refusals
        self._reading = slack.manners.reading

    async def fetch(self, workspace: Workspace, sent: Sequence[Mapping[str, Any]], *, event_id: int) -> ExtractedFiles:
        """Return files, and in words what is in them or why they are not there."""
        files, fetch = map(read_file, sent[:_MAX_FILES]), partial(self._fetch_one, workspace)
        fetched = await read_files(files, fetch, _size_of, self._reading, self._slack.storage, event_id)
        fetched.remarks += _more_than_fetched(sent)
        return fetched

    async def _fetch_one(self, workspace: Workspace, file: SlackFile, attempt: ExtractionAttempt) -> FetchedFile:
        if file.must_be_asked_for and file.id is not None:
            file = await self._ask(workspace, file)
        if file.document is not None:
            return await self._read_document(workspace, file, file.document, attempt)
        return await self._download(workspace, file, attempt)

    async def _download(self, workspace: Workspace, file: SlackFile, attempt: ExtractionAttempt) -> FetchedFile:
        if file.size_bytes is not None and file.size_bytes > SLACK_FILE_BYTES:
            return file.refused(_TOO_LARGE)
        if file.url is None or not _is_slacks(file.url, workspace.client.base_url):
            return file.refused("it lies outside Slack")
        try:
            data, content_type = await workspace.client.download(workspace.token, file.url, max_bytes=SLACK_FILE_BYTES)
        except SlackFailure as failure:
            logger.warning("slack.file_not_fetched", extra={"reason": failure.code})
            return file.refused("it could not be fetched; ask for it to be sent again")
        if len(data) > SLACK_FILE_BYTES:
            return file.refused(_TOO_LARGE)
        if content_type == "text/html" and file.mime_type != "text/html":  # the page that asks people to sign in
            logger.warning("slack.file_refused", extra={"advice": "the scope files:read is missing"})
            return file.refused("Slack does not give it out")
        key = ("slack", f"{workspace.team_id}:{file.id}") if file.id is not None else None
        attachment = Attachment(file.mime_type, file.name, data)
        return await read_document(attachment, str(file), self._reading, key=key, attempt=attempt)

    async def _read_document(
        self, workspace: Workspace, file: SlackFile, kind: DocumentKind, attempt: ExtractionAttempt
    ) -> FetchedFile:
        """Return a canvas or a list as its words; it changes, so that it is read each time."""
        read, mime_type, feature = _READERS[kind]
        if file.id is not None and await self._refusals.takes(workspace.team_id, feature):
            try:
                words = Attachment(mime_type, file.name, (await read(workspace, file.id)).encode())
                return await read_document(words, str(file), self._reading, attempt=attempt)
            except SlackFailure as failure:
                logger.info("slack.paper_not_read", extra={"reason": failure.code})
                if failure.is_not_here and not failure.is_about_arguments:  # those name one document
                    await self._refusals.note(workspace.team_id, feature, failure)
        return None, FileText(f"[{file}: Slack does not give out its words]", unread=file.name or str(file))

    async def _ask(self, workspace: Workspace, file: SlackFile) -> SlackFile:
        """Return a file of which an event tells only that it is there."""
        try:
            answer = await workspace.ask("files.info", file=file.id)
        except SlackFailure as failure:
            logger.warning("slack.file_unknown", extra={"reason": failure.code})
            return file
        found = field(answer, "file")
        return read_file(found) if isinstance(found, Mapping) else file


def _is_slacks(url: str, base_url: str) -> bool:
    """Return whether an address may be given the token."""
    parts, own = urlsplit(url), urlsplit(base_url)
    if parts.scheme == own.scheme and parts.netloc == own.netloc:
        return True
    host = (parts.hostname or "").lower()
    return parts.scheme == "https" and any(host == each or host.endswith(f".{each}") for each in _SLACK_HOSTS)


def read_file(file: Mapping[str, Any]) -> SlackFile:
    """Return what an event says of a file."""
    name, kind, size = field(file, "name") or field(file, "title"), field(file, "mimetype"), field(file, "size")
    url = field(file, "url_private_download") or field(file, "url_private")
    is_external = field(file, "mode") == "external" or field(file, "is_external") is True
    mime_type = kind if isinstance(kind, str) and "/" in kind else "application/octet-stream"
    document = kind_of(file)
    return SlackFile(
        document or _NAMES.get(mime_type.partition("/")[0], "file"),
        word(field(file, "id")),
        mime_type,
        name if isinstance(name, str) and name else None,
        size if isinstance(size, int) and not isinstance(size, bool) else None,
        url=url if isinstance(url, str) and not is_external else None,
        must_be_asked_for=field(file, "file_access") == "check_file_info" or (url is None and not is_external),
        document=document,
    )


def named(sent: Sequence[Mapping[str, Any]]) -> ExtractedFiles:
    """Return files that are not fetched, by their names: nobody asked for them, or not yet."""
    return ExtractedFiles(remarks=[*(f"[{read_file(each)}]" for each in sent[:_MAX_FILES]), *_more_than_fetched(sent)])


def _more_than_fetched(sent: Sequence[Mapping[str, Any]]) -> list[str]:
    more = len(sent) - _MAX_FILES
    return [f"[and {more} more files, which were not fetched]"] if more > 0 else []


def _size_of(file: SlackFile) -> int:
    return file.size_bytes or SLACK_FILE_BYTES
