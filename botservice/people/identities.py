"""Accounts on platforms, and the codes and links that show that two of them belong to one person.

A display name proves nothing. A code is shown in one account alone, and that account then sees who gave it before
anything is joined.
"""

import secrets
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Final

from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Author
from botservice.people.names import browser_account
from botservice.texts.formatted import code, line, quoted


@dataclass(frozen=True, slots=True)
class Identity:
    """An account of a person on a platform.

    Attributes:
        platform_id: The platform's own id. Display names are not unique and prove nothing.
        name: The display name when they last wrote.
    """

    id: int
    person_id: int
    platform: str
    platform_id: str
    name: str | None = None

    @property
    def label(self) -> FormattedText:
        """Return its name with its id, such as "Alice on Telegram (`telegram:42`)": a name alone proves nothing."""
        account = code(f"{self.platform}:{self.platform_id}")
        return line(quoted(self.name), f" on {self.platform.capitalize()} (", account, ")")

    @property
    def author(self) -> Author:
        """Return the identity as the author of messages."""
        return Author(self.platform, self.platform_id, self.name)


def is_browser_of(account: Identity, identity: Identity) -> bool:
    """Return whether an account is the one that an identity has in browsers."""
    return (account.platform, account.platform_id) == ("web", browser_account(identity.id))


CODE_LIFETIME: Final = timedelta(minutes=10)

MAX_GUESSES: Final = 5  # wrong codes of one person in GUESSING

GUESSING: Final = timedelta(hours=1)

LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # pragma: allowlist secret - none looks like another

LENGTH: Final = 8  # 40 bits, for ten minutes


class LinkProblem(StrEnum):
    """Why a code was not taken."""

    UNKNOWN = "unknown"  # wrong, used, or too old: which of them is nobody's business
    GUESSING = "guessing"  # too many wrong ones
    SAME = "same"  # both accounts are one person already


@dataclass(frozen=True, slots=True)
class Offer:
    """A code that waits.

    Attributes:
        asker: Whose code it is.
        giver: Who gave it; None until a person does.
    """

    id: int
    asker: Identity
    giver: Identity | None
    is_accepted: bool


def new_code() -> str:
    """Return a code to be shown once that nobody can guess, such as "ABCD-EFGH"."""
    return spell("".join(secrets.choice(LETTERS) for _ in range(LENGTH)))


def spell(letters: str) -> str:
    """Return the letters of a code in a form that can be read out."""
    return f"{letters[:4]}-{letters[4:]}"


PLATFORM: Final = "web"

LINK_LIFETIME: Final = timedelta(minutes=10)

LOGIN_LIFETIME: Final = timedelta(days=30)

MOST_LINKS: Final = 5  # that an account is given in LINK_LIFETIME

MOST_LOGINS: Final = 10  # of an account; a new one takes the place of the oldest

_SECRET_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Browser:
    """A browser that is logged in.

    Attributes:
        asker: Who wrote /web.
        account: What they are called in browsers, such as "p42".
    """

    asker: Identity
    account: str


def new_secret() -> str:
    """Return a new secret for a link or a cookie: 256 random bits."""
    return secrets.token_urlsafe(_SECRET_BYTES)


def as_code(text: str) -> str | None:
    """Return a typed text as a code, or None if it is none."""
    letters = text.upper().replace("-", "").replace(" ", "")
    return spell(letters) if len(letters) == LENGTH and set(letters) <= set(LETTERS) else None
