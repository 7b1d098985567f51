"""What is said about letting somebody in."""

import re
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

_SLACK_CHANNEL: Final = re.compile(r"slack:.+:[CDG][A-Z0-9]+")
_TELEGRAM_GROUP: Final = re.compile(r"telegram:-\d+")


class AccessRole(StrEnum):
    """What somebody may do."""

    OWNER = "owner"  # everything, and let others in
    MEMBER = "member"  # talk, and bring the service into groups
    BLOCKED = "blocked"  # nothing, whatever else is said


class Kind(StrEnum):
    """Who is let in."""

    PERSON = "person"
    CHAT = "chat"


class Notice(StrEnum):
    """What somebody is told who is not let in."""

    NOTHING = "nothing"
    REFUSED = "refused"
    CODE = "code"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Subject:
    """A person or a chat."""

    kind: Kind
    name: str

    @classmethod
    def of(cls, name: str, kind: Kind | None = None) -> "Subject":
        """Return what a name such as "telegram:42" or "telegram:-100" means, where nobody says which kind it is."""
        if kind is not None:
            return cls(kind, name)
        is_chat = _TELEGRAM_GROUP.fullmatch(name) or _SLACK_CHANNEL.fullmatch(name)
        return cls(Kind.CHAT if is_chat else Kind.PERSON, name)


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether somebody is let in, and what they are told if not.

    Attributes:
        role: What they may do; None for somebody whom nobody has named.
        code: What they may show the owner.
        is_asking: Whether they want to be told, also if they were before.
    """

    is_admitted: bool
    role: AccessRole | None = None
    notice: Notice = Notice.NOTHING
    subject: Subject | None = None
    code: str | None = None
    name: str | None = None
    is_asking: bool = False


@dataclass(frozen=True, slots=True)
class Entry:
    """Somebody whom the owner has decided about, or is asked to.

    Attributes:
        role: None for a newcomer.
        code: A newcomer's.
        source: Who said so: the settings, or whoever gave the command.
    """

    subject: Subject
    role: AccessRole | None
    source: str | None = None
    name: str | None = None
    code: str | None = None
    until: datetime | None = None
