"""What people are told who are not let in."""

from typing import Final

from botservice.access.values import Notice, Ruling
from botservice.texts import in_language

_KEYS: Final = {Notice.REFUSED: "access.refused", Notice.CODE: "access.code", Notice.GROUP: "access.group"}


def refusal_text(ruling: Ruling, language: str | None) -> str:
    """Return what somebody is told who is not let in; empty for nothing."""
    key = _KEYS.get(ruling.notice)
    if key is None:
        return ""
    name = ruling.subject.name if ruling.subject is not None else "?"
    return in_language(key, language, name=name, code=ruling.code)
