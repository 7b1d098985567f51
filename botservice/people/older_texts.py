"""Splitting texts that earlier versions stored in one with what they quoted or forwarded."""

import re
from dataclasses import dataclass
from typing import Final

from botservice.core.messages import Author
from botservice.core.references import Reference, ReferenceKind

_FORWARD: Final = "[forwarded from "
_QUOTES: Final = {"[in reply to ": ReferenceKind.REPLY, "[about a message of ": ReferenceKind.ABOUT}
_SAID, _SAID_END = ': "', '"]'
_SHARE: Final = re.compile(r"^\[shared(?: from |: )", re.MULTILINE)
_SHARE_END: Final = "]\n["
_YOU: Final = "you"
_CUT: Final = "…"


@dataclass(frozen=True, slots=True)
class Taken:
    """A text, split into the author's words and others'.

    Attributes:
        text: What its author wrote and sent.
        own_text: What of that are their own words, or None if that is all of it.
    """

    text: str
    references: tuple[Reference, ...] = ()
    own_text: str | None = None


def take_apart(text: str, *, has_files: bool) -> Taken:
    """Split a stored text into its author's words and others', as far as that can be told.

    What was read in files stood behind it in brackets as well, and nothing says of whom it is.
    """
    if text.startswith(_FORWARD):
        return Taken("", (_forward(text),))
    rest, references = _quote(text)
    rest, shares = _shares(rest)
    own = rest.partition("\n[")[0] if has_files else rest
    return Taken(rest, (*references, *shares), None if own == rest else own)


def _forward(text: str) -> Reference:
    heading, _, said = text.partition("\n")
    name = heading.removeprefix(_FORWARD).removesuffix("]")
    return Reference(ReferenceKind.FORWARD, Author(name=name), said)


def _quote(text: str) -> tuple[str, tuple[Reference, ...]]:
    """Return a text without the message that it begins with, which it replies to or asks about, and that message."""
    begin = next((each for each in _QUOTES if text.startswith(each)), None)
    if begin is None:
        return text, ()
    heading = text.partition("\n")[0]
    name, is_quoted, _ = heading.removeprefix(begin).partition(_SAID)
    if not is_quoted:
        name, said, end = name.removesuffix("]"), "", len(heading)
        if not heading.endswith("]"):
            return text, ()
    else:
        end = text.rfind(_SAID_END + "\n")
        end = len(text) - len(_SAID_END) if text.endswith(_SAID_END) else end
        if end < 0:
            return text, ()
        said = text[len(begin) + len(name) + len(_SAID) : end]
        end += len(_SAID_END)
    return text[end:].removeprefix("\n"), (_made(_QUOTES[begin], name, said),)


def _shares(text: str) -> tuple[str, tuple[Reference, ...]]:
    """Return a text without the messages that it shares, which stood behind it, and these."""
    begins = [found.start() for found in _SHARE.finditer(text)]
    if not begins:
        return text, ()
    kept, shares = [text[: begins[0]].rstrip("\n")], []
    for begin, end in zip(begins, [*begins[1:], len(text)], strict=True):
        share, found, files = text[begin:end].rstrip("\n").partition(_SHARE_END)
        heading, _, said = share.removesuffix("]").partition(": ")
        shares.append(_made(ReferenceKind.SHARE, heading.partition(" from ")[2], said.replace("\n  ", "\n")))
        kept.append(f"[{files}" if found else "")
    return "\n".join(part for part in kept if part), tuple(shares)


def _made(kind: ReferenceKind, name: str, said: str) -> Reference:
    said = said.replace('" ]', _SAID_END)
    if name == _YOU:
        return Reference(kind, None, said, is_of_assistant=True)
    return Reference(kind, Author(name=name) if name else None, said)


def without_cut(said: str) -> str:
    """Return a quotation without its sign that it was cut."""
    return said.removesuffix(_CUT).strip()
