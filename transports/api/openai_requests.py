"""What a client of OpenAI's two APIs asks: of all that it sends, its last message is new."""

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.exceptions import HTTPException

from botservice.core.messages import Attachment, storable

STATELESS: Final = "-stateless"
_LONGEST_ID: Final = 200  # characters
_DATA_URL: Final = re.compile(r"data:([a-z0-9.+/-]{1,100});base64,", re.IGNORECASE)
# Open WebUI asks for titles, tags and follow-up questions so: with the chat inside one message of the user. Its prompt
# for answers from documents begins so too, without a chat.
# Source: open-webui, backend/open_webui/config.py, DEFAULT_TITLE_GENERATION_PROMPT_TEMPLATE and those after it.
_CHORE: Final = re.compile(r"### Task:\s")
_CHAT_INSIDE: Final = "<chat_history>"
# Sources: the same file, DEFAULT_EMOJI_GENERATION_PROMPT_TEMPLATE; LibreChat, @librechat/agents, src/utils/title.ts.
_CHORES: Final = (
    "Your task is to reflect the speaker's likely facial expression",
    "Provide a concise, 5-word-or-less title for the conversation",
    "Analyze this conversation and provide:\n1. The detected language of the conversation\n",
)
# Which of the client's tools to call. Source: the same file, DEFAULT_TOOLS_FUNCTION_CALLING_PROMPT_TEMPLATE.
_CHORE_OF_SYSTEM: Final = "Available Tools: "
_CONVERSATION_HEADERS: Final = ("x-conversation-id", "x-openwebui-chat-id")
_USER_HEADERS: Final = ("x-user-id", "x-openwebui-user-id")


@dataclass(frozen=True, slots=True)
class Asked:
    """What a client asks.

    Attributes:
        user: Who, as the client names them.
        conversation: In which conversation.
        is_kept: Whether the conversation goes on; a request of no conversation, or about one, leaves nothing.
        has_tools: Whether tools may run; not in a request about a conversation, such as for its title.
        has_usage: Whether a stream ends with what it took.
    """

    text: str
    files: tuple[Attachment, ...]
    model: str
    user: str | None
    conversation: str | None
    is_kept: bool
    has_tools: bool
    is_streamed: bool
    has_usage: bool

    @property
    def keys(self) -> Mapping[str, str]:
        """The context keys of its conversation."""
        named = {"user": self.user, "conversation": self.conversation}
        return {"transport": "api", **{name: value for name, value in named.items() if value is not None}}


def read_chat(fields: Mapping[str, Any], headers: Mapping[str, str]) -> Asked:
    """Read a request of chat.completions.

    Raises:
        HTTPException: it asks nothing, or in a wrong way.
    """
    options = fields.get("stream_options")
    has_usage = isinstance(options, Mapping) and options.get("include_usage") is True
    messages = fields.get("messages")
    content = _last_of_user(messages, "messages")
    first = messages[0] if isinstance(messages, list) else None
    told = first.get("content") if isinstance(first, Mapping) and first.get("role") == "system" else None
    is_chore = isinstance(told, str) and told.startswith(_CHORE_OF_SYSTEM)
    return _read(fields, headers, content, has_usage=has_usage, is_chore=is_chore)


def read_responses(fields: Mapping[str, Any], headers: Mapping[str, str]) -> Asked:
    """Read a request of Responses.

    Raises:
        HTTPException: it asks nothing, or in a wrong way.
    """
    if fields.get("previous_response_id") is not None:
        raise HTTPException(400, 'responses are not kept by their ids: name the conversation by "conversation"')
    given = fields.get("input")
    content = given if isinstance(given, str) else _last_of_user(given, "input")
    return _read(fields, headers, content, has_usage=True)


def _read(
    fields: Mapping[str, Any], headers: Mapping[str, str], content: Any, *, has_usage: bool, is_chore: bool = False
) -> Asked:
    text, files = _read_content(content)
    conversation = fields.get("conversation")
    if isinstance(conversation, Mapping):
        conversation = conversation.get("id")
    user = _read_id("user", fields.get("user"), headers, _USER_HEADERS)
    named = _read_id("conversation", conversation, headers, _CONVERSATION_HEADERS)
    model = fields.get("model")
    if model is not None and not isinstance(model, str):
        raise HTTPException(400, '"model" must be a text')
    is_chore = is_chore or text.startswith(_CHORES) or (_CHORE.match(text) is not None and _CHAT_INSIDE in text)
    is_about_one = is_chore or (model or "").endswith(STATELESS)
    return Asked(
        text,
        files,
        storable(model or ""),
        user,
        named,
        is_kept=not is_about_one and (user is not None or named is not None),
        has_tools=not is_about_one,
        is_streamed=fields.get("stream") is True,
        has_usage=has_usage,
    )


def _read_id(name: str, given: Any, headers: Mapping[str, str], others: Sequence[str]) -> str | None:
    """Return an id that stands in the body, or in one of the headers that clients send."""
    value = given if given is not None else next((headers[each] for each in others if headers.get(each)), None)
    if value is None or value == "":
        return None
    if not isinstance(value, str) or len(value) > _LONGEST_ID:
        raise HTTPException(400, f'"{name}" must be a text of at most {_LONGEST_ID} characters')
    return storable(value)


def _last_of_user(messages: Any, name: str) -> Any:
    """Return the content of the last message that the user wrote."""
    if not isinstance(messages, list):
        raise HTTPException(400, f'"{name}" must be a list of messages')
    for each in reversed(messages):
        if isinstance(each, Mapping) and each.get("role") == "user":
            return each.get("content")
    raise HTTPException(400, f'"{name}" has no message of the role user')


def _read_content(content: Any) -> tuple[str, tuple[Attachment, ...]]:
    """Return the text and the pictures of a message."""
    if isinstance(content, str):
        return content, ()
    texts, files = list[str](), list[Attachment]()
    for part in content if isinstance(content, list) else []:
        if not isinstance(part, Mapping):
            continue
        if part.get("type") in ("text", "input_text") and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif part.get("type") in ("image_url", "input_image"):
            address = part.get("image_url")
            files.append(_picture(address.get("url") if isinstance(address, Mapping) else address))
    if not texts and not files:
        raise HTTPException(400, "the last message of the user has neither text nor pictures")
    return "\n".join(texts), tuple(files)


def _picture(address: Any) -> Attachment:
    if isinstance(address, str) and address.startswith(("https://", "http://")):
        return Attachment("image/jpeg", url=address)
    found = _DATA_URL.match(address) if isinstance(address, str) else None
    if found is None:
        raise HTTPException(400, "a picture must be an http address, or data:image/png;base64,…")
    try:
        data = base64.b64decode(address[found.end() :], validate=True)
    except (binascii.Error, ValueError):
        raise HTTPException(400, "a picture has no valid base64") from None
    return Attachment(found[1].lower(), data=data)
