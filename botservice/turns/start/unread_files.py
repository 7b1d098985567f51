"""What people are told about files that were not read."""

import re
from collections.abc import Sequence
from typing import Final

from botservice.texts import in_language

_MAX_NAMES: Final = 3
_MAX_CHARACTERS: Final = 60
_MARKS: Final = re.compile(r"[^\w .-]")


def unread_text(names: Sequence[str], language: str | None) -> str:
    """Return what a person is told whose files were not read."""
    shown = [_MARKS.sub(" ", name)[:_MAX_CHARACTERS].strip() or "…" for name in names[:_MAX_NAMES]]
    more = ", …" if len(names) > _MAX_NAMES else ""
    return in_language("files.unread", language, names=", ".join(shown) + more)
