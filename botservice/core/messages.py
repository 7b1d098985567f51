"""The values that travel through the service: who said what, with which files."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

from botservice.core.formatted_text import FormattedText
from botservice.core.message_references import Reference, write_out

# White space, control characters, what Unicode 17.0 lets every program ignore (DerivedCoreProperties.txt,
# Default_Ignorable_Code_Point), and Braille without a dot.
_BLANK: Final = re.compile(
    r"[\s\x00-\x1f\x7f-\x9f\u2800"
    r"\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    r"\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]*"
)
_UNSTORABLE = dict.fromkeys((0, *range(0xD800, 0xE000)), "\ufffd")


def storable(text: str) -> str:
    """Return text that every database can keep: NUL and lone surrogates become U+FFFD."""
    if text.isascii():
        return text.replace("\0", "\ufffd")
    return text.translate(_UNSTORABLE)


def is_blank(text: str) -> bool:
    """Return whether nothing of a text can be seen: it asks nothing, and answers nothing."""
    return _BLANK.fullmatch(text) is not None


class Role(StrEnum):
    """Who speaks in a conversation."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"

    # The contract writes them in lower case; both spellings are the same member.
    system = "system"
    user = "user"
    assistant = "assistant"
    tool = "tool"


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote a message: an identity on a platform and the name shown there.

    Attributes:
        platform: The platform of the identity, such as "telegram"; None for a name without identity.
        id: The platform's own id of the person. A negative number is a chat, in whose name several may write.
        name: The display name. Names are not unique and prove nothing.
    """

    platform: str | None = None
    id: str | None = None
    name: str | None = None

    def is_same(self, other: "Author | None") -> bool:
        """Check whether another author is the same identity, regardless of names."""
        return other is not None and (self.platform, self.id) == (other.platform, other.id) and self.id is not None

    @property
    def is_chat(self) -> bool:
        """Whether it was written in the name of a chat, so that the person is unknown."""
        return self.id is not None and self.id.startswith("-") and self.id[1:].isdecimal()

    @classmethod
    def of(cls, value: "Author | str | None") -> "Author | None":
        """Convert a value into an author; a plain string is a name without identity."""
        if value is None or isinstance(value, Author):
            return value
        return cls(name=value)


SHOWN_TYPES: Final = frozenset({"image/jpeg", "image/jpg", "image/png", "image/gif", "image/webp"})
"""Source: the API references of OpenAI, Anthropic, Google and Mistral; no other format is taken by all of them."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """A file of a message: an image, a voice note, a document.

    Attributes:
        mime_type: The media type, such as "image/png".
        data: The bytes, or None if only the address is known.
        url: An address without secrets.

    Raises:
        ValueError: it has neither data nor url, or both.
        TypeError: a field is of another type.
    """

    mime_type: str
    name: str | None = None
    data: bytes | None = field(default=None, repr=False)
    url: str | None = None

    def __post_init__(self) -> None:
        if (self.data is None) == (self.url is None):
            raise ValueError("an Attachment takes either data or url")
        if not isinstance(self.mime_type, str):
            raise TypeError(f"an Attachment's mime_type is a text such as 'text/csv', not {self.mime_type!r}")
        if isinstance(self.data, bytearray | memoryview):
            object.__setattr__(self, "data", bytes(self.data))
        if not isinstance(self.data, bytes | None):
            kind = type(self.data).__name__
            raise TypeError(f"an Attachment's data is bytes, not {kind}: a text becomes some by .encode()")
        if not isinstance(self.name, str | None) or not isinstance(self.url, str | None):
            raise TypeError("an Attachment's name and url are texts, or None")


class ButtonStyle(StrEnum):
    """The meaning of a button, which platforms may show as a colour."""

    PRIMARY = "primary"
    SUCCESS = "success"
    DANGER = "danger"


@dataclass(frozen=True, slots=True)
class Button:
    """A button below a message, which people press instead of typing.

    Attributes:
        text: Its label.
        value: The message that pressing it sends, as if the person had typed it; None for text. Commands work too.
        url: The address that it opens instead.
        style: Its style, on platforms that have styles.
    """

    text: str
    value: str | None = None
    url: str | None = None
    style: ButtonStyle | None = None

    @property
    def says(self) -> str:
        """The message that pressing it sends."""
        return self.text if self.value is None else self.value


@dataclass(frozen=True, slots=True)
class Moment:
    """A time that a message names: platforms that can show each reader their own.

    Attributes:
        words: As it stands in the text.
        at: Which time that is; aware.
    """

    words: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CommandCall:
    """A command of a person, such as /forget.

    Attributes:
        name: The name without slash, in lower case.
        arguments: The text after the name.
    """

    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A model's request to run a tool.

    Attributes:
        id: The model's own id of the call.
        malformed_arguments: The model's text if it was not a JSON object; arguments is empty then.
    """

    id: str
    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    malformed_arguments: str | None = None


@dataclass(frozen=True, slots=True)
class TokenUsage:
    """The tokens of a model call, counted by its server.

    Attributes:
        cached_tokens: The part of input_tokens that came from the server's prompt cache, if reported.
        reasoning_tokens: The part of output_tokens that is hidden reasoning, if reported.
        cache_write_tokens: The part of input_tokens that the server caches for later calls, if reported.
        web_searches: The number of the server's web searches, if reported.
    """

    input_tokens: int
    output_tokens: int
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    cache_write_tokens: int | None = None
    web_searches: int | None = None

    @property
    def total_tokens(self) -> int:
        """Input and output together."""
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation.

    Attributes:
        id: Its id in storage, unique over all contexts; None for a message that was never stored.
        created_at: When it was written (aware, UTC).
        token_count: Tokens of text, counted with the encoding of the reader's model.
        external_id: The platform's own id of it.
        buttons: The buttons below it. They belong to its delivery and are not stored with the history.
        language: The language of its reader, such as "pt"; it is not stored either.
        text: The author's own words; quotes and forwards are in references.
        references: The quotes, forwards and shares in it.
        is_personal: Whether it concerns only the person who asks. Platforms that can hide it from others do. It is not
            stored.
        moments: The times in its text; they are not stored either.
        spoken: Its text as speech, if the question was spoken; only the text is stored.
        formatted: The service's own text with its formatting. Platforms show it instead of text, which has the same
            words; without it, text is Markdown. It is stored with the deliveries.
        is_all_own: Whether its author wrote all of it, including files and quotes; None if unknown, such as in data of
            older releases.
        output: What an answer says as an object, where a program asked for one; its text is kept, as JSON.
    """

    id: int | None = None
    role: Role = Role.USER
    text: str = ""
    attachments: tuple[Attachment, ...] = ()
    author: Author | None = None
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    token_count: int | None = None
    external_id: str | None = None
    buttons: tuple[Button, ...] = ()
    language: str | None = None
    references: tuple[Reference, ...] = ()
    is_personal: bool = False
    moments: tuple[Moment, ...] = ()
    spoken: Attachment | None = None
    formatted: FormattedText | None = None
    is_all_own: bool | None = field(default=None, compare=False)
    output: Any = field(default=None, compare=False, repr=False)

    @property
    def full_text(self) -> str:
        """Its text with quotes and forwards in brackets, as a model reads it."""
        return write_out(self.text, self.references) if self.references else self.text

    def holds_others(self, asker: Author | None) -> bool:
        """Check whether it may contain words of people other than the assistant and the person who asks."""
        if self.role is not Role.USER:
            return False
        return asker is None or not self.is_all_own or not asker.is_same(self.author)

    def __post_init__(self) -> None:
        # Only what is not so already: dozens of messages are read for each turn.
        if type(self.role) is not Role:
            object.__setattr__(self, "role", Role(self.role))
        if type(self.attachments) is not tuple:
            object.__setattr__(self, "attachments", tuple(self.attachments))
        if type(self.buttons) is not tuple:
            object.__setattr__(self, "buttons", tuple(self.buttons))
        if not (self.author is None or type(self.author) is Author):
            object.__setattr__(self, "author", Author.of(self.author))


@dataclass(frozen=True, slots=True)
class InboundMessage:
    """A message that a transport read from a platform's event.

    Attributes:
        is_addressed: Whether it is meant for the bot; otherwise it is stored and not answered.
        command: The command, if it is one. An unknown command is ordinary text. A known one is answered without the
            agent, and neither it nor its answer enters the history.
        language: The language of the person's client, such as "pt-br", or None if unknown.
        is_private: Whether the person and the bot are alone.
        replies_to: The platform's id of the message that it replies to, if any.
        own_text: The author's own words, if text has more: without the content of files and without text of programs.
        is_anonymous: Whether it was written in the name of a channel or a group, so that the person is unknown.
        before: Earlier messages that the bot has not received, such as the first message of a thread. They are stored.
        is_whole: Whether reading the event in full adds nothing, neither files nor earlier messages.
        unread: The names of files that could not be read; the person is told.
        references: The quotes, forwards and shares of others; text has none of their words.
        is_all_own: Whether its author wrote all of it in this conversation, including files and quotes. Only then may a
            tool run that they always allow. By default true if it has nothing but their own text.
        only_tools: The names of the tools that may run for it, where a program handed it in and no person wrote it.
        looking_at: The page or document that its author has open, in a few words. Only the model sees it, in this turn
            only. It is not stored.
        unasked_by: The model that decided to answer it although it is not addressed to the bot.
    """

    text: str
    author: Author | None = None
    attachments: tuple[Attachment, ...] = ()
    created_at: datetime | None = None
    external_id: str | None = None
    is_addressed: bool = True
    command: CommandCall | None = None
    language: str | None = None
    is_private: bool = True
    replies_to: str | None = None
    before: "tuple[InboundMessage, ...]" = ()
    is_whole: bool = False
    unread: tuple[str, ...] = ()
    own_text: str | None = None
    is_anonymous: bool = False
    references: tuple[Reference, ...] = ()
    looking_at: str | None = None
    only_tools: frozenset[str] | None = None
    is_all_own: bool | None = None
    unasked_by: str | None = None

    def __post_init__(self) -> None:
        if self.is_all_own is None:
            of_others = any(not each.is_of_assistant for each in self.references)
            own = self.own_text is None and not self.attachments and not of_others and not self.is_anonymous
            object.__setattr__(self, "is_all_own", own)

    @property
    def full_text(self) -> str:
        """Its text with quotes and forwards in brackets, as a model reads it."""
        return write_out(self.text, self.references) if self.references else self.text
