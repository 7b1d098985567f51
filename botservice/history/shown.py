"""How a prompt shows messages of the history: the same for whoever builds one and for its record, which keeps ids."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Self

from botservice.messages import Attachment, Message
from botservice.quoting import quote_name, quote_record, quote_said, quote_said_in_group

CUT: Final = "…"  # at the end of a message of which not all is shown
LONGEST_RECORD: Final = 4_000  # characters of one remembered message


@dataclass(frozen=True, slots=True)
class Records:
    """Messages as dated records, in their order.

    Attributes:
        texts: What stands of each.
    """

    messages: Sequence[Message]
    texts: Sequence[str]

    @classmethod
    def of(cls, messages: Sequence[Message]) -> Self:
        """Return messages as records."""
        return cls(messages, [as_record(message) for message in messages])

    @property
    def text(self) -> str:
        """All of them, each in a line of its own."""
        return "\n".join(self.texts)


Source = Message | Records
"""What a message of a prompt shows of the history."""


def as_is(message: Message) -> str:
    """Return what a message says, and which files came with it."""
    return _with_files(message.full_text, message) if message.attachments else message.full_text


def as_said(message: Message) -> str:
    """Return a message as a person's among words of ours."""
    return _with_files(quote_said(message.full_text), message)


def as_said_in_group(message: Message) -> str:
    """Return a message as that of one person among others, with their name."""
    author = message.author
    if author is None or not (author.name or author.id):
        return as_said(message)
    return _with_files(f"{quote_name(author.name)}: {quote_said_in_group(message.full_text)}", message)


def as_record(message: Message) -> str:
    """Return a message as a record: dated, with its author, and nothing in it ends the records."""
    text = message.full_text
    if message.attachments:
        text = " ".join([text, *map(mention, message.attachments)])
    text = text.strip()
    text = text if len(text) <= LONGEST_RECORD else text[:LONGEST_RECORD] + CUT
    return f"{record_heading(message)}{quote_record(text)}"


def record_heading(message: Message, date: str | None = None) -> str:
    """Return what stands in front of a message in a record."""
    name = message.author.name if message.author and message.author.name else message.role.value
    return f"[{date or format(message.created_at, '%Y-%m-%d %H:%M')} UTC] {quote_name(name)}: "


def mention(attachment: Attachment) -> str:
    """Return what stands for a file in a text."""
    return f"[file: {quote_name(attachment.name, 'unnamed')}, {quote_name(attachment.mime_type)}]"


def is_image(attachment: Attachment) -> bool:
    """Return whether a model is shown a file itself."""
    return attachment.mime_type.startswith("image/")


# The place in this list is stored: what is changed about one of them is a new one at the end.
WAYS: Final[Sequence[Callable[[Message], str]]] = (as_is, as_said, as_said_in_group, as_record)
RECORD: Final = WAYS.index(as_record)


def _with_files(text: str, message: Message) -> str:
    if not message.attachments:
        return text
    others = [mention(each) for each in message.attachments if not is_image(each)]
    return "\n".join([text, *others] if text else others)
