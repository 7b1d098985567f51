"""People of the same name in one chat: a model is shown a mark next to such a name, one for each account.

The mark follows from the account alone, so that it stays the same from turn to turn. It stands in brackets, which no
shown name has.
"""

import hashlib
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from botservice.core.messages import Author
from botservice.core.quoting import quote_name

_BRACKETS = frozenset(("Ps", "Pe"))  # also those that only look like ours


def shared_names(authors: Iterable[Author | None]) -> frozenset[str]:
    """Return the names that several accounts among authors have, and with them all that could pass for marked ones."""
    first, shared, bracketed = dict[str, str](), set[str](), set[str]()
    for author in authors:
        if author is None or author.id is None:
            continue
        name = _shown(author.name)
        if first.setdefault(name, _account(author)) != _account(author):
            shared.add(name)
        if not name.isalnum() and any(unicodedata.category(sign) in _BRACKETS for sign in name):
            bracketed.add(name)
    return frozenset(shared | bracketed if shared else ())


def is_shared(name: str | None, shared: frozenset[str]) -> bool:
    """Return whether a name, in whatever letters, is among shared ones."""
    return _shown(name) in shared


def account_mark(author: Author | None) -> str:
    """Return the mark of an account, with a space before it; nothing for a name without account."""
    return "" if author is None or author.id is None else f" [{_digest(_account(author))}]"


def _account(author: Author) -> str:
    return f"{author.platform}:{author.id}"


@lru_cache(maxsize=4096)
def _shown(name: str | None) -> str:
    """Return a name as it is shown, in small letters."""
    return quote_name(name).casefold()


@lru_cache(maxsize=4096)
def _digest(account: str) -> str:
    return hashlib.blake2b(account.encode("utf-8", "replace"), digest_size=2, person=b"namesakes").hexdigest()
