"""A call as it came over the wire: its parameters from query, form, multipart or JSON, and the errors it can meet."""

import dataclasses
import json
import re
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl


def word_set(words: str) -> frozenset[str]:
    """Return the words of a text as a set: shorter to read than a set of strings."""
    return frozenset(words.split())


JSON_PARAMETERS = word_set(
    "allowed_updates caption_entities commands entities ephemeral_message_parameters explanation_entities "
    "link_preview_options media menu_button "
    "message_ids options permissions reaction reply_markup reply_parameters rich_message scope "
    "suggested_post_parameters"
)
INTEGER_PARAMETERS = word_set(
    "cache_time chat_id direct_messages_topic_id draft_id duration ephemeral_message_id from_chat_id "
    "height length limit max_connections "
    "message_id message_thread_id offset receiver_user_id reply_to_message_id timeout user_id width"
)
FLAG_PARAMETERS = word_set(
    "allow_paid_broadcast allow_sending_without_reply can_stop disable_content_type_detection disable_notification "
    "disable_web_page_preview drop_pending_updates has_spoiler is_big protect_content show_alert "
    "show_caption_above_media supports_streaming"
)


class ApiError(Exception):
    """An answer that is not ok."""

    def __init__(self, status: int, description: str, parameters: dict[str, int] | None = None):
        super().__init__(description)
        self.status = status
        self.description = description
        self.parameters = parameters


def bad_request(reason: str, parameters: dict[str, int] | None = None) -> ApiError:
    """Return the 400 of the Bot API; it writes the first letter small unless the reason is an upper-case code."""
    if reason[:1].isupper() and not reason[1:2].isupper():
        reason = reason[0].lower() + reason[1:]
    return ApiError(400, f"Bad Request: {reason}", parameters)


def forbidden(reason: str) -> ApiError:
    return ApiError(403, f"Forbidden: {reason}")


def too_many_requests(retry_after: int) -> ApiError:
    return ApiError(429, f"Too Many Requests: retry after {retry_after}", {"retry_after": retry_after})


@dataclass(frozen=True, slots=True)
class Upload:
    """A file inside a multipart body."""

    field: str
    filename: str
    mime_type: str
    data: bytes = dataclasses.field(repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a method. `params` are decoded: numbers, flags and JSON values are what they stand for."""

    method: str
    params: dict[str, Any]
    files: dict[str, Upload]
    seq: int = 0

    @property
    def chat_id(self) -> int | str | None:
        return self.params.get("chat_id")

    def text(self, name: str) -> str:
        value = self.params.get(name, "")
        return value if isinstance(value, str) else json.dumps(value)

    def integer(self, name: str, default: int = 0) -> int:
        value = self.params.get(name, default)
        return value if isinstance(value, int) and not isinstance(value, bool) else default

    def flag(self, name: str) -> bool:
        return bool(self.params.get(name, False))

    def object(self, name: str, kind: type, what: str) -> Any:
        """Return the JSON value of a parameter, or None where it is absent."""
        value = self.params.get(name)
        if value is None or value == "":
            return None
        if not isinstance(value, kind):
            raise bad_request(f"can't parse {what} JSON object")
        return value


def read_parameters(query: str, content_type: str, body: bytes) -> tuple[dict[str, Any], dict[str, Upload]]:
    """Return a call's parameters and files, from wherever they stand."""
    raw: dict[str, Any] = dict(parse_qsl(query, keep_blank_values=True))
    files: dict[str, Upload] = {}
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        raw |= parse_qsl(body.decode("utf-8", "surrogateescape"), keep_blank_values=True, errors="surrogateescape")
    elif kind == "application/json":
        try:
            given = json.loads(body or b"{}")
        except ValueError as error:
            raise ApiError(400, "Bad Request: can't parse JSON object") from error
        if not isinstance(given, dict):
            raise ApiError(400, "Bad Request: can't parse JSON object: expected an object")
        raw |= given
    elif kind == "multipart/form-data":
        for upload in split_multipart(body, content_type):
            if upload.filename:
                files[upload.field] = upload
            else:
                raw[upload.field] = upload.data.decode("utf-8", "surrogateescape")
    return {name: _decode(name, value) for name, value in raw.items()}, files


def _decode(name: str, value: Any) -> Any:
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise bad_request("strings must be encoded in UTF-8") from error
        if name in INTEGER_PARAMETERS and re.fullmatch(r"\s*-?\d{1,19}\s*", value):
            return int(value)
        if name in FLAG_PARAMETERS:
            return value.strip().lower() in {"true", "yes", "1"}
        if name in JSON_PARAMETERS and value:
            try:
                return json.loads(value)
            except ValueError:
                return value  # whoever needs it says what is wrong with it
    return value


def split_multipart(body: bytes, content_type: str) -> list[Upload]:
    """Return the parts of a multipart/form-data body; a plain field is a part without a file name."""
    found = re.search(r'boundary="?([^";,]+)"?', content_type)
    if found is None:
        raise ApiError(400, "Bad Request: boundary not found")
    mark = b"--" + found[1].encode()
    parts: list[Upload] = []
    for piece in (b"\r\n" + body).split(b"\r\n" + mark)[1:]:
        if piece.startswith(b"--"):
            return parts
        head, separator, data = piece.partition(b"\r\n\r\n")
        if not separator:
            break
        fields = head.decode("utf-8", "replace")
        name = re.search(r'[; ]name="([^"]*)"', fields)
        filename = re.search(r'filename="([^"]*)"', fields)
        mime_type = re.search(r"(?im)^content-type:\s*(\S+)", fields)
        parts.append(
            Upload(
                name[1] if name else "",
                filename[1] if filename else "",
                mime_type[1] if mime_type else "application/octet-stream",
                data,
            )
        )
    raise ApiError(400, "Bad Request: can't parse multipart body: its end is missing")
