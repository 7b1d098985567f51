"""The arguments of a call as a person reads them: in full or in short, without secrets, and with nothing unseen."""

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final

from botservice.telemetry import redact

_LONGEST_VALUE: Final = 300  # characters of one argument where they are shown in short
_MOST_LINES: Final = 20
_MASKED: Final = "••••••"
_SECRET_NAMES: Final = frozenset(
    {
        *("password", "passwd", "passphrase", "pwd", "secret", "token", "key", "apikey", "credential", "credentials"),
        *("auth", "authorization", "bearer", "cookie", "pin", "otp", "cvv", "cvc", "signature"),
    }
)
_WORDS: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
# What gives itself away, whatever it is called: keys of well-known services, and signed tokens.
_SECRET_VALUES: Final = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|xox[abeprs]-[\w-]{10,}|AKIA[A-Z0-9]{12,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+"
    r"|Bearer\s+[\w.~+/-]{12,}=*|\d{6,}:[\w-]{30,})"
)
_UNSEEN: Final = frozenset(("Cc", "Cf", "Co", "Cs", "Zl", "Zp"))


def readable(arguments: Mapping[str, Any], *, is_short: bool = True) -> tuple[str, bool]:
    """Return arguments as lines of `name: value`, and whether that is all of them.

    Args:
        is_short: Cut long values, and leave lines out where there are many.
    """
    masked = mask(arguments)
    lines, is_whole = [], True
    for name, value in masked.items():
        text = visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
        if is_short and len(text) > _LONGEST_VALUE:
            text, is_whole = f"{text[:_LONGEST_VALUE]}… ({len(text)})", False
        lines.append(f"{visible(str(name))}: {text}")
    if is_short and len(lines) > _MOST_LINES:
        lines, is_whole = [*lines[:_MOST_LINES], "…"], False
    return "\n".join(lines), is_whole


def in_one_line(arguments: Mapping[str, Any], most: int) -> tuple[str, bool]:
    """Return arguments in one line of at most so many characters, and whether that is all of them."""
    text, _ = readable(arguments, is_short=False)
    line = "; ".join(text.splitlines())
    return (line, True) if len(line) <= most else (f"{line[:most]}…", False)


def mask(value: Any, name: str = "") -> Any:
    """Return the value of an argument with dots in the place of what its name, or its look, says is secret."""
    if isinstance(value, Mapping):
        return {key: mask(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [mask(each, name) for each in value]
    if value is not None and not isinstance(value, bool) and _is_secret_name(name):
        return _MASKED
    return _SECRET_VALUES.sub(_MASKED, redact(value)) if isinstance(value, str) else value


def visible(text: str) -> str:
    """Return text in one line in which every sign is seen: what turns the direction or hides is written out."""
    return "".join(
        f"\\u{ord(each):04x}" if unicodedata.category(each) in _UNSEEN and each != "\n" else each for each in text
    ).replace("\n", "\\n")


def fenced(text: str) -> str:
    """Return text as a block of code that nothing in it ends."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _is_secret_name(name: str) -> bool:
    return any(word.lower() in _SECRET_NAMES for word in _WORDS.findall(name))
