"""Passwords that stand in addresses and in descriptions of connections, whatever the value is called."""

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import unquote

_LONGEST: Final = 8_000  # characters of one value that are looked through
_NAMED: Final = re.compile(r"\b(?:password|passwd|pwd)=([^\s;&'\"]{1,500})", re.IGNORECASE)
_SHORTEST_TOKEN: Final = 16  # of a name without a password, as some services take tokens


def passwords_in(value: str) -> Iterator[str]:
    """Yield what may be a password in a value, such as the one of postgres://somebody:password@host/name."""
    value = value[:_LONGEST]
    for found in (*_in_addresses(value), *_NAMED.findall(value)):
        yield found
        yield unquote(found)


def _in_addresses(value: str) -> Iterator[str]:
    for rest in value.split("://")[1:]:
        host = re.split(r"[/?#]", rest, maxsplit=1)[0]
        # Whoever writes a password with a slash, as no address has it, means it up to the last @.
        for part in {host, rest}:
            account, at, _ = part.rpartition("@")
            name, colon, password = account.partition(":")
            if at and (password or len(name) >= _SHORTEST_TOKEN):
                yield password if colon else name
