"""Making an answer's messages visible, one call each, with a second try where a simpler one may pass."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cachetools import FIFOCache

from botservice.core.errors import DeliveryError, DeliveryRefused
from botservice.turns.turn import Delivery
from transports.common.json_fields import field, items_of
from transports.common.pacing import Pace
from transports.common.stored_files import ending_of, read_stored_file
from transports.slack.answer_blocks import SlackPage, markdown, read_page, suspect
from transports.slack.client import NotInstalled, SlackFailure, as_delivery_error
from transports.slack.context import SlackContext
from transports.slack.formatting import (
    as_text,
    button_row,
    escape_words,
    feedback_buttons,
    find_address,
    mark_of,
    rich_text,
)
from transports.slack.inbound_events import timestamp
from transports.slack.queries import list_questions
from transports.slack.refusals import Feature
from transports.slack.streams import Streams, stop_stream
from transports.slack.workspaces import Workspace

logger = logging.getLogger(__name__)

_QUESTION_GONE = ("message_not_found", "thread_not_found")
_GONE = ("message_not_found", "cant_update_message", "edit_window_closed")


@dataclass(frozen=True, slots=True)
class _Form:
    """A text as it is sent."""

    parameters: dict[str, Any]
    needs: frozenset[Feature] = frozenset()


class SlackSender:
    """Sends deliveries: once, as far as Slack can be asked whether they have arrived."""

    def __init__(self, slack: SlackContext, streams: Streams, pace: Pace) -> None:
        self._slack = slack
        self._streams = streams
        self._pace = pace
        self._lost_answers = LostAnswers()
        self._refusals = slack.refusals
        self._previews = slack.manners.previews
        self._looks = {"unfurl_links": self._previews, "unfurl_media": self._previews}

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Make a delivery visible and return its timestamp."""
        try:
            workspace = await self._slack.workspaces.find(context_keys["team_id"])
        except NotInstalled as error:
            raise DeliveryRefused(str(error)) from error
        except SlackFailure as failure:
            raise DeliveryError(str(failure), retry_after_seconds=failure.retry_after_seconds) from failure
        place: dict[str, Any] = {
            "channel": context_keys["channel_id"],
            "thread_ts": delivery.payload.get("thread_ts") or context_keys.get("thread_ts"),
        }
        try:
            if await self._is_taken_back(delivery):
                if delivery.external_id is not None:
                    await _take_away(workspace, place, delivery.external_id)
                raise DeliveryRefused("its question was deleted")
            return await self._send(workspace, place, delivery, context_keys)
        except SlackFailure as failure:
            if failure.is_token_gone:
                self._slack.workspaces.forget(workspace.team_id)
            if failure.code == "ratelimited":
                self._pace.refused(place["channel"], failure.retry_after_seconds or 1.0)
            self._lost_answers.note(delivery, failure)
            raise as_delivery_error(failure) from failure

    async def _send(
        self, workspace: Workspace, place: Mapping[str, Any], delivery: Delivery, context_keys: Mapping[str, str]
    ) -> str | None:
        response_url = delivery.payload.get("response_url")
        if isinstance(response_url, str) and "text" in delivery.payload and await self._respond(response_url, delivery):
            return None
        if "only_for" in delivery.payload:
            if "text" in delivery.payload and await self._whisper(workspace, place, delivery):
                return None
            asker = str(delivery.payload["only_for"])
            channel = await self._slack.workspaces.find_direct_channel(workspace.team_id, asker)
            place = {"channel": channel, "thread_ts": None}
        if "file" in delivery.payload:
            if delivery.external_id is not None:
                await _take_away(workspace, place, delivery.external_id)
            return await self._send_file(workspace, place, delivery, context_keys)
        if delivery.external_id is not None:
            shown = await self._end_stream(workspace, place, delivery)
            if shown is not None:
                return shown
        if delivery.attempts and (arrived := await self._lost_answers.find(workspace, place, delivery)) is not None:
            return arrived
        await self._pace.turn(place["channel"], delivery.turn_id)
        await delivery.confirm()
        ts = (await self._post(workspace, place, delivery)).get("ts")
        return ts if isinstance(ts, str) else None

    async def _is_taken_back(self, delivery: Delivery) -> bool:
        """Return whether a delivery answers what was deleted since; what was sent may still be corrected."""
        storage, turn_id = self._slack.storage, delivery.turn_id
        if storage is None or delivery.is_replacing or "asked_at" not in delivery.payload:
            return False
        asked = await storage.read(lambda connection: list_questions(connection, turn_id))
        return bool(asked) and all(is_deleted for _, is_deleted in asked)

    async def _post(self, workspace: Workspace, place: Mapping[str, Any], delivery: Delivery) -> dict[str, Any]:
        """Post a message; where nothing can be replied to, a person alone is answered without a thread."""
        try:
            return await self._in_some_form(workspace, "chat.postMessage", delivery, **place, **self._looks)
        except SlackFailure as failure:
            if failure.code != "cannot_reply_to_message" or not place["channel"].startswith("D"):
                raise
        return await self._in_some_form(
            workspace, "chat.postMessage", delivery, channel=place["channel"], **self._looks
        )

    async def _respond(self, url: str, delivery: Delivery) -> bool:
        """Answer where only the asker sees it; return whether that was possible."""
        body = {"response_type": "ephemeral", "replace_original": False, **_as_blocks(delivery), **self._looks}
        if "response_thread_ts" in delivery.payload:
            body["thread_ts"] = delivery.payload["response_thread_ts"]
        try:
            await self._slack.workspaces.client.respond(url, body)
        except SlackFailure as failure:
            if failure.is_later:
                raise
            logger.info("slack.response_url_expired")  # the conversation with the bot takes it
            return False
        return True

    async def _whisper(self, workspace: Workspace, place: Mapping[str, Any], delivery: Delivery) -> bool:
        """Answer in a channel so that only the asker sees it; return whether that was possible."""
        if not await self._refusals.takes(workspace.team_id, Feature.EPHEMERAL):
            return False
        await self._pace.turn(place["channel"], delivery.turn_id)
        await delivery.confirm()
        shown = {**place, "user": delivery.payload["only_for"], **_as_blocks(delivery)}
        try:
            await workspace.call("chat.postEphemeral", **shown)
        except SlackFailure as failure:
            if failure.is_later or failure.code in _QUESTION_GONE:
                raise
            if failure.is_not_here:
                await self._refusals.note(workspace.team_id, Feature.EPHEMERAL, failure)
            return False
        return True

    async def _end_stream(self, workspace: Workspace, place: Mapping[str, Any], delivery: Delivery) -> str | None:
        """Turn the stream into the answer and return its timestamp, or None if the stream is gone."""
        page, ts = read_page(str(delivery.payload["text"])), str(delivery.external_id)
        stream = self._streams.pop((place["channel"], ts), None)  # whatever comes of it, it is not what was known
        if not self._previews and find_address(page.text) is not None:
            # Only chat.postMessage can be told to fetch nothing (docs.slack.dev), so the stream gives way to a message.
            await _take_away(workspace, place, ts)
            return None
        if stream is not None and _rich(delivery) is None and stream.can_become(page.text):
            below = {"blocks": _below(delivery) or None, "metadata": mark_of(delivery)}
            if await stream.complete(workspace, page, self._refusals, **below):
                return ts
        await stop_stream(workspace, place["channel"], ts)
        try:
            await self._in_some_form(workspace, "chat.update", delivery, channel=place["channel"], ts=ts)
        except SlackFailure as failure:
            if failure.is_about_form:  # only chat.postMessage can be told that a text holds no marks
                await _take_away(workspace, place, ts)
            elif failure.code not in _GONE:
                raise
            return None
        return ts

    async def _in_some_form(
        self, workspace: Workspace, method: str, delivery: Delivery, **place: Any
    ) -> dict[str, Any]:
        """Send a text, simpler and simpler: with figures, with blocks, as markdown, as plain text."""
        words, rich, below = _as_text(delivery), _rich(delivery), _below(delivery)
        if rich is not None:
            forms = [_Form({"text": words, "blocks": [rich, *below]})]
        else:
            page = read_page(str(delivery.payload["text"])).refusing(await self._refusals.of(workspace.team_id))
            forms = _forms_of(page, words, below, has_blocks=method == "chat.update")
        if method != "chat.update":
            forms.append(_Form({"text": words, "mrkdwn": False}))
        for number, form in enumerate(forms, start=1):
            try:
                return await workspace.call(method, **place, **form.parameters, metadata=mark_of(delivery))
            except SlackFailure as failure:
                if not failure.is_about_form or number == len(forms):
                    raise
                if form.needs and failure.is_about_figures:
                    await self._refusals.note(workspace.team_id, suspect(form.needs), failure)
                logger.warning("slack.sent_differently", extra={"delivery": delivery.id, "reason": failure.code})
        raise DeliveryRefused("Slack takes this message in no form")

    async def _send_file(
        self, workspace: Workspace, place: Mapping[str, Any], delivery: Delivery, context_keys: Mapping[str, str]
    ) -> str | None:
        file: Any = delivery.payload["file"]
        if "url" in file:
            link = replace(delivery, payload={**delivery.payload, "text": str(file["url"])})
            answer = await self._in_some_form(workspace, "chat.postMessage", link, **place, **self._looks)
            return str(answer.get("ts"))
        data = await read_stored_file(self._slack.storage, context_keys, file)
        name = str(file.get("name") or f"file{ending_of(str(file['mime_type']))}")
        if (arrived := await self._lost_answers.find(workspace, place, delivery, file=(name, len(data)))) is not None:
            return arrived
        upload = await workspace.ask("files.getUploadURLExternal", filename=name, length=str(len(data)))
        await workspace.client.upload(str(upload.get("upload_url")), data)
        await self._pace.turn(place["channel"], delivery.turn_id)
        await delivery.confirm()
        await workspace.call(
            "files.completeUploadExternal",
            files=[{"id": upload.get("file_id"), "title": name}],
            channel_id=place["channel"],
            thread_ts=place["thread_ts"],
            initial_comment=delivery.payload.get("comment"),
        )
        return None


async def _take_away(workspace: Workspace, place: Mapping[str, Any], ts: str) -> None:
    """Take away a stream whose place a message or a file takes."""
    await stop_stream(workspace, place["channel"], ts)
    try:
        await workspace.call("chat.delete", channel=place["channel"], ts=ts)
    except SlackFailure as failure:
        if failure.is_later:
            raise
        logger.info("slack.stream_left", extra={"reason": failure.code})


def _forms_of(page: SlackPage, words: str, below: Sequence[dict[str, Any]], *, has_blocks: bool) -> list[_Form]:
    """Return the forms of an answer: with its figures drawn, with blocks, as Markdown.

    Args:
        words: The text for notifications and old clients.
        below: The blocks that stand under it, such as buttons.
        has_blocks: Whether what it replaces keeps its blocks unless it gets new ones.
    """
    forms = [_Form({"markdown_text": page.words})]
    if below or has_blocks:
        forms.insert(0, _Form({"text": words, "blocks": [markdown(page.words), *below]}))
    if page.needs:
        forms.insert(0, _Form({"text": words, "blocks": [*page.blocks(), *below]}, page.needs))
    return forms


def _rich(delivery: Delivery) -> dict[str, Any] | None:
    """Return what the service itself says as a block; None for an answer in Markdown."""
    elements = delivery.payload.get("rich")
    return rich_text(elements) if isinstance(elements, list) else None


def _as_blocks(delivery: Delivery) -> dict[str, Any]:
    """Return a delivery that one person alone sees: as blocks in which no figure is drawn."""
    words = _rich(delivery) or markdown(read_page(str(delivery.payload["text"])).words)
    return {"text": _as_text(delivery), "blocks": [words, *_below(delivery)]}


def _as_text(delivery: Delivery) -> str:
    """Return the words of a delivery as a text in which nothing is markup but mentions that its author may make."""
    text = str(delivery.payload["text"])
    return as_text(text) if _rich(delivery) is None else escape_words(text)


def _below(delivery: Delivery) -> list[dict[str, Any]]:
    """Return the blocks that stand under a text: what may be pressed, and what people think of it."""
    buttons, language = delivery.payload.get("choices"), delivery.payload.get("asks_feedback")
    row = button_row(buttons) if isinstance(buttons, list) else None
    blocks = [] if row is None else [row]
    if language:
        blocks.append(feedback_buttons(delivery.turn_id, str(language)))
    return blocks


_PAGE = 15  # the most that apps outside the marketplace are given at once
_MAX_PAGES = 20
_MAX_KNOWN = 10_000
# Slack could not be asked at all: sending may repeat a message, never asking again would keep it back for ever.
_CANNOT_ASK = ("missing_scope", "not_in_channel", "thread_not_found", "method_not_supported_for_channel_type")


class LostAnswers:
    """Finds messages that were sent. What was surely refused is not looked for."""

    def __init__(self) -> None:
        self._refused: FIFOCache[int, int] = FIFOCache(_MAX_KNOWN)
        self._cursors: dict[int, str] = {}

    def note(self, delivery: Delivery, failure: SlackFailure) -> None:
        """Take note of how an attempt went."""
        if not failure.is_unknown and self._refused.get(delivery.id, 0) == delivery.attempts:
            self._refused[delivery.id] = delivery.attempts + 1

    async def find(
        self, workspace: Workspace, place: Mapping[str, Any], delivery: Delivery, *, file: tuple[str, int] | None = None
    ) -> str | None:
        """Return the timestamp of a delivery that has arrived before, or None if it has not.

        Args:
            file: The name and the size by which a file is known, because files carry no metadata.

        Raises:
            DeliveryError: Slack cannot be asked now; the message waits, because otherwise it might come twice.
        """
        if delivery.attempts <= self._refused.get(delivery.id, 0):
            return None
        try:
            return await self._search(workspace, place, delivery, file)
        except SlackFailure as failure:
            if failure.code in _CANNOT_ASK:
                logger.warning("slack.arrival_unknown", extra={"delivery": delivery.id, "reason": failure.code})
                return None
            wait = failure.retry_after_seconds
            raise DeliveryError("asking Slack whether it arrived", retry_after_seconds=wait) from failure

    async def _search(
        self, workspace: Workspace, place: Mapping[str, Any], delivery: Delivery, file: tuple[str, int] | None
    ) -> str | None:
        thread_ts = place["thread_ts"]
        method = "conversations.replies" if thread_ts else "conversations.history"
        oldest = timestamp(delivery.payload.get("asked_at"))
        for _ in range(_MAX_PAGES):
            answer = await workspace.ask(
                method,
                channel=place["channel"],
                ts=thread_ts or None,
                oldest=oldest,
                limit=str(_PAGE),
                include_all_metadata="true",
                cursor=self._cursors.get(delivery.id),
            )
            for message in items_of(answer, "messages"):
                if _is(message, delivery, file, workspace):
                    self._cursors.pop(delivery.id, None)
                    return timestamp(field(message, "ts"))
            cursor = field(answer, "response_metadata", "next_cursor")
            if not isinstance(cursor, str) or not cursor or (thread_ts is None and oldest is None):
                break
            self._cursors[delivery.id] = cursor  # after a refusal, asking goes on here
        self._cursors.pop(delivery.id, None)
        return None


def _is(message: object, delivery: Delivery, file: tuple[str, int] | None, workspace: Workspace) -> bool:
    if file is None:
        metadata, mark = field(message, "metadata"), mark_of(delivery)
        is_ours = bool(field(metadata, "event_type") == mark["event_type"])
        is_this = field(metadata, "event_payload", "delivery") == mark["event_payload"]["delivery"]
        return is_ours and bool(is_this)
    if field(message, "user") != workspace.bot_user_id:
        return False
    return any((field(each, "name"), field(each, "size")) == file for each in items_of(message, "files"))
