"""The values of access: roles, rulings, and entries of the list."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

_SLACK_CHANNEL: Final = re.compile(r"slack:.+:[CDG][A-Z0-9]+")
_TELEGRAM_GROUP: Final = re.compile(r"telegram:-\d+")


class AccessRole(StrEnum):
    """What a person or a chat may do."""

    OWNER = "owner"  # everything, and let others in
    MEMBER = "member"  # talk, and bring the service into groups
    BLOCKED = "blocked"  # nothing, whatever else is said


class SubjectKind(StrEnum):
    """The kind of what is admitted."""

    PERSON = "person"
    CHAT = "chat"


class Notice(StrEnum):
    """What a sender is told who is not admitted."""

    NOTHING = "nothing"
    REFUSED = "refused"
    CODE = "code"
    GROUP = "group"


@dataclass(frozen=True, slots=True)
class Subject:
    """A person or a chat."""

    kind: SubjectKind
    name: str

    @classmethod
    def of(cls, name: str, kind: SubjectKind | None = None) -> "Subject":
        """Return what a name such as "telegram:42" or "telegram:-100" means, unless its kind is given."""
        if kind is not None:
            return cls(kind, name)
        is_chat = _TELEGRAM_GROUP.fullmatch(name) or _SLACK_CHANNEL.fullmatch(name)
        return cls(SubjectKind.CHAT if is_chat else SubjectKind.PERSON, name)


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a sender is admitted, and what they are told if not.

    Attributes:
        role: What they may do, or None if they have no role.
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
class AccessEntry:
    """A person or chat with a role, or a newcomer who waits for one.

    Attributes:
        role: None for a newcomer.
        roles: Those of the owner's own naming that they have as well.
        source: Where the role comes from: the settings, or the person who gave the command.
    """

    subject: Subject
    role: AccessRole | None
    source: str | None = None
    name: str | None = None
    code: str | None = None
    until: datetime | None = None
    roles: Sequence[str] = ()
