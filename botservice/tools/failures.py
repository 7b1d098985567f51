"""Describing the error of a tool to the model, with secrets masked."""

import re
from typing import Final

from botservice.memory import StepError
from botservice.messages import storable
from botservice.telemetry import redact

_LONGEST: Final = 2_000  # characters; some libraries put a whole answer into an error
_SECRET: Final = "[secret]"  # noqa: S105 - stands for one
_IN_ADDRESSES: Final = re.compile(r"(?<=://)[^\s/@:]{0,200}:[^\s/@]{1,500}@")
_NAMED: Final = re.compile(
    r"\b((?:api|access|auth|client|secret|private)?[_-]?(?:key|token|secret|password|passwd|pwd|signature|sig))"
    r"(\"?'?\s{0,3}[=:]\s{0,3}\"?'?)[^\s&\"',;)}]{4,500}",
    re.IGNORECASE,
)
_BY_LOOK: Final = re.compile(
    r"\b(?:sk-[\w-]{16,500}|gh[pousr]_\w{20,500}|xox[abeprs]-[\w-]{10,500}|AKIA[A-Z0-9]{12,500}"
    r"|eyJ[\w-]{8,2000}\.[\w-]{8,2000}\.[\w-]{1,2000}|(?:Bearer|Basic)\s{1,3}[\w.~+/-]{8,2000}=*)"
)


def describe_failure(error: BaseException) -> str:
    """Return the kind and the message of an error, with a mark in the place of what looks like a secret."""
    text = redact(storable(str(StepError.of(error))))
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… (cut: it has {len(text)} characters)"
    text = _IN_ADDRESSES.sub(f"{_SECRET}@", text)
    return _NAMED.sub(rf"\1\2{_SECRET}", _BY_LOOK.sub(_SECRET, text))
