"""What a message holds of others: whom it answers, forwards or shares, and what they said, as values.

They are written out as text only where a person reads them: in a prompt, on a page, in an export.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final, TypeVar, assert_never

from botservice.core.quoting import quote_inside, quote_name, quote_record

if TYPE_CHECKING:
    from botservice.core.messages import Author

_File = TypeVar("_File")

LONGEST_REFERENCE: Final = 2_000  # characters of what is quoted or shared; what is forwarded is kept whole


class ReferenceKind(StrEnum):
    """How a message refers to another one."""

    REPLY = "reply"
    FORWARD = "forward"  # all of its text and files are another's
    SHARE = "share"
    ABOUT = "about"  # a question about a message that its author did not reply to


@dataclass(frozen=True, slots=True)
class Reference:
    """A quote, forward or share of another message.

    Attributes:
        author: The author of the other message; without an id if the platform hides it, None if nobody is named.
        text: The repeated words; empty if the message is only named.
        external_id: The platform's own id of the other message, if it is in the same chat.
        is_of_assistant: Whether the bot wrote it.
        file_count: How many files of the message belong to the other one. They follow the author's own files, in the
            order of the references.
        is_sent_on: Whether another person sent it on, so that its author is not its sender. It is not kept.
    """

    kind: ReferenceKind
    author: "Author | None" = None
    text: str = ""
    external_id: str | None = None
    is_of_assistant: bool = False
    file_count: int = 0
    is_sent_on: bool = False

    @property
    def is_erased(self) -> bool:
        """Whether its content is gone because its author was forgotten."""
        return self.author is None and not self.text and self.external_id is None

    def erased(self) -> "Reference":
        """Remove its content because its author was forgotten."""
        return Reference(self.kind)


def keep_files(
    files: Sequence[_File], references: Sequence[Reference], is_kept: Callable[[Reference], bool]
) -> list[_File]:
    """Return the files of a message without those of references that are not kept."""
    place = max(0, len(files) - sum(each.file_count for each in references))
    kept = list(files[:place])
    for each in references:
        kept += files[place : place + each.file_count] if is_kept(each) else ()
        place += each.file_count
    return kept


def write_out(text: str, references: Sequence[Reference]) -> str:
    """Return the text of a message with what it holds of others, in brackets, as a person or a model reads it."""
    if not references:
        return text
    before = [_write(each) for each in references if each.kind is not ReferenceKind.SHARE]
    after = [_write(each) for each in references if each.kind is ReferenceKind.SHARE]
    return "\n".join(part for part in (*before, text, *after) if part)


def write_out_for(text: str, references: Sequence[Reference], is_shown: Callable[[Reference], bool]) -> str:
    """Return the text of a message where others may not be read: in the place of what they say stands that they did."""
    if not references:
        return text
    marks = [_write(each) if is_shown(each) else _MARKS[each.kind] for each in references]
    return "\n".join(part for part in (*marks, text) if part)


_MARKS: Final = {
    ReferenceKind.REPLY: "[in reply to a message of another person]",
    ReferenceKind.FORWARD: "[forwarded: a message of another person]",
    ReferenceKind.SHARE: "[shared: a message of another person]",
    ReferenceKind.ABOUT: "[about a message of another person]",
}


def _write(reference: Reference) -> str:
    name = None if reference.author is None else reference.author.name
    who = "you" if reference.is_of_assistant else quote_name(name)
    match reference.kind:
        case ReferenceKind.REPLY:
            return f"[in reply to {who}{_said(reference.text)}]"
        case ReferenceKind.ABOUT:
            return f"[about a message of {who}{_said(reference.text)}]"
        case ReferenceKind.FORWARD:
            return f"[forwarded from {who}]\n{reference.text}".rstrip("\n")
        case ReferenceKind.SHARE:
            whose = f" from {who}" if name or reference.is_of_assistant or reference.is_erased else ""
            said = f": {quote_record(reference.text)}" if reference.text else ""
            return f"[shared{whose}{said}]"
        case _:
            assert_never(reference.kind)


def _said(text: str) -> str:
    return f': "{quote_inside(text)}"' if text else ""
