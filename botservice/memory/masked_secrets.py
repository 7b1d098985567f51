"""Secrets among the arguments of calls: dots are shown in their place."""

import contextlib
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from botservice.telemetry import redact

_MASKED: Final = "••••••"
# Of a name, without what stands between its words: "key" and the like alone say what is acted on, and have to be seen.
_SECRET_NAMES: Final = re.compile(
    r"passw(?:or)?d|passphrase|pwd|secret|token|credential|authorization|bearer|cookie"
    r"|(?:api|access|private|signing|encryption|ssh)key"
)
_SECRET_NUMBERS: Final = re.compile(r"(?<![a-z])(?:otp|cvv|cvc)(?![a-z])")
# What gives itself away, whatever it is called: keys of well-known services, signed tokens, passwords in addresses.
_SECRET_VALUES: Final = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|xox[abeprs]-[\w-]{10,}|AKIA[A-Z0-9]{12,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+"
    r"|Bearer\s+[\w.~+/-]{12,}=*|\d{6,}:[\w-]{30,})"
)
_PASSWORD: Final = re.compile(r"(//[^/\s:@]+:)[^@\s/]+(?=@)")
_ENDS: Final = 4  # signs of a look-alike that are shown at its beginning and its end: a model can choose such words
_BETWEEN_WORDS: Final = re.compile(r"[^a-z]+")


def mask(value: Any, name: str = "") -> Any:
    """Return the value of an argument with dots in the place of secrets, known by their names or their form."""
    if isinstance(value, Mapping):
        return {key: mask(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [mask(each, name) for each in value]
    if value is None or isinstance(value, bool):
        return value
    if _SECRET_NUMBERS.search(name.lower()) or (isinstance(value, str) and _is_secret_name(name)):
        return _MASKED
    return _mask_text(value) if isinstance(value, str) else value


def _mask_text(text: str) -> str:
    if text.lstrip()[:1] in ("{", "["):
        with contextlib.suppress(ValueError, RecursionError):
            inner = json.loads(text)
            masked = mask(inner)
            if masked != inner:
                return json.dumps(masked, ensure_ascii=False)
    return _SECRET_VALUES.sub(_ends_of, _PASSWORD.sub(rf"\1{_MASKED}", redact(text)))


def _ends_of(found: re.Match[str]) -> str:
    return f"{found[0][:_ENDS]}{_MASKED}{found[0][-_ENDS:]}"


def _is_secret_name(name: str) -> bool:
    return _SECRET_NAMES.search(_BETWEEN_WORDS.sub("", name.lower())) is not None
