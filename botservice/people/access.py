"""Who may use the service: everybody, whom the owner has named, or whom the owner admits by a code."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Final

from botservice.config.settings import Settings
from botservice.core.errors import BotServiceError, SetBySettings
from botservice.core.messages import Author, InboundMessage
from botservice.core.policies import GUEST_ROLE, MEMBER_ROLE, OWNER_ROLE, AccessMode, is_identity, is_role
from botservice.people.access_queries import (
    Owe,
    grant,
    is_anybody_blocked,
    issue_code,
    list_entries,
    list_owners,
    list_person_roles,
    read_code,
    read_inviter,
    read_names,
    read_roles,
    replace_roles,
    take_code,
    take_roles,
    tell_once,
)
from botservice.people.access_values import AccessEntry, AccessRole, Notice, Ruling, Subject, SubjectKind
from botservice.people.identities import as_code, new_code
from botservice.people.names import chat_name, is_browser_account, is_direct_topic, is_guest, person_name, transport_of
from botservice.storage.database import Connection, Storage

# Who types here runs the service, or has shown ADMIN_TOKEN; or came by a link, which the name of the account says.
_OWN_PLATFORMS: Final = frozenset({"terminal", "web"})
_KNOCKING: Final = frozenset({"start", "pair"})
_LETTING_IN: Final = "approve"


class Access:
    """Decides who has access, by the settings and by what owners have said since."""

    def __init__(
        self,
        mode: AccessMode = AccessMode.OPEN,
        *,
        owners: frozenset[str] = frozenset(),
        allowed: frozenset[str] = frozenset(),
    ) -> None:
        """Make a gate.

        Args:
            owners: People, such as "telegram:42": they may admit others, and cannot be removed.
            allowed: People and chats that are admitted.
        """
        self.mode = mode
        self._owners = owners
        self._allowed = allowed

    @classmethod
    def of(cls, settings: Settings) -> "Access":
        """Return the gate that the settings describe."""
        return cls(settings.access, owners=settings.owners, allowed=settings.allowed)

    def is_idle(self, connection: Connection) -> bool:
        """Return whether access is open and no one is blocked, so that no message has to be judged."""
        return self.mode is AccessMode.OPEN and not is_anybody_blocked(connection)

    async def judge(
        self, storage: Storage, message: InboundMessage, context_keys: Mapping[str, str], now: datetime
    ) -> Ruling:
        """Return whether the sender of a message may use the service there, and what to tell them if not."""
        return await storage.read(lambda connection: self.rule(connection, message, context_keys, now))

    async def lets_in(
        self, storage: Storage, context_keys: Mapping[str, str], person: Author | None, *, is_shared: bool
    ) -> bool:
        """Return whether a conversation may use the service at this moment, whatever was kept of it before.

        Args:
            person: The only one who was ever seen there, where that is known.
        """

        def query(connection: Connection) -> bool:
            if self.is_idle(connection) or _is_own(transport_of(context_keys), context_keys.get("session_id")):
                return True
            chat = chat_name(context_keys)
            role, of_chat = self._roles(connection, person_name(person), chat)
            if is_shared:
                return self._is_let_in(connection, chat, of_chat)
            if person is None:
                return self.mode is AccessMode.OPEN and of_chat is not AccessRole.BLOCKED
            return role in (AccessRole.OWNER, AccessRole.MEMBER) or (self.mode is AccessMode.OPEN and role is None)

        return await storage.read(query)

    def is_owner(self, connection: Connection, person: Author | None) -> bool:
        """Return whether a person is an owner of the service."""
        role, _ = self._roles(connection, person_name(person), "")
        return role is AccessRole.OWNER

    def runs_service(self, person: Author | None) -> bool:
        """Return whether a person is in charge whatever is said: by the terminal, or with ADMIN_TOKEN."""
        return person is not None and _is_own(person.platform, person.id)

    def tool_roles(self, connection: Connection, author: Author | None) -> frozenset[str]:
        """Return the roles by which a person may use tools: on every platform, in every chat; none of a blocked one.

        Who is not known as one person, such as an administrator who writes in the name of a group, is a guest.
        """
        person = person_name(author)
        if author is None or not person or author.is_chat:
            return frozenset({GUEST_ROLE})
        role, _ = self._roles(connection, person, "")
        if role is AccessRole.BLOCKED:
            return frozenset()
        of_access = {AccessRole.OWNER: {MEMBER_ROLE, OWNER_ROLE}, AccessRole.MEMBER: {MEMBER_ROLE}}
        more = of_access.get(role, set()) if role is not None else set()
        return frozenset({GUEST_ROLE, *more, *list_person_roles(connection, person)})

    def list_roles(self, connection: Connection, now: datetime) -> dict[str, set[str]]:
        """Return the accounts that have more than the role of a guest, with their roles."""
        held: dict[str, set[str]] = {}
        for entry in self.entries(connection, now):
            if entry.subject.kind is SubjectKind.PERSON and entry.role in (AccessRole.OWNER, AccessRole.MEMBER):
                held.setdefault(entry.subject.name, set()).update({entry.role.value, *entry.roles})
        return held

    def check_roles(self, connection: Connection, name: str, roles: Collection[str]) -> None:
        """Check that a person can be given exactly these roles.

        Raises:
            SetBySettings: the settings say otherwise.
            BotServiceError: the name is nobody's, or a role is no name.
        """
        is_chat = Subject.of(name).kind is SubjectKind.CHAT or Author(id=name.partition(":")[2]).is_chat
        if not is_identity(name) or is_chat:
            raise BotServiceError(f"{name!r} names no person: say platform:id, such as telegram:42")
        wrong = sorted(each for each in roles if not is_role(each))
        if wrong or not roles:
            raise BotServiceError("a role is a name of up to 32 small letters, digits, - and _, such as deployer")
        known = {name, *read_names(connection, name)}
        if known & self._owners and OWNER_ROLE not in roles:
            raise SetBySettings(f"{name} is an owner by the setting OWNERS: take them out there", "OWNERS")
        if known & self._allowed and set(roles) == {GUEST_ROLE}:
            raise SetBySettings(f"{name} is a member by the setting ALLOWED: take them out there", "ALLOWED")

    def set_roles(self, connection: Connection, name: str, roles: Collection[str], by: str, now: datetime) -> None:
        """Give a person exactly these roles, whatever accounts they have linked. All but a guest have access.

        Raises:
            BotServiceError: as `check_roles`.
        """
        self.check_roles(connection, name, roles)
        replace_roles(connection, name, set(roles) - {OWNER_ROLE, MEMBER_ROLE, GUEST_ROLE}, now)
        if set(roles) != {GUEST_ROLE}:
            role = AccessRole.OWNER if OWNER_ROLE in roles else AccessRole.MEMBER
            grant(connection, Subject(SubjectKind.PERSON, name), role, by, now)

    def is_last_owner(self, connection: Connection, name: str, *, is_locking: bool = False) -> bool:
        """Return whether a person is an owner, and no other person is.

        Args:
            is_locking: Whether that holds until the end of the transaction.
        """
        if self._owners:  # nobody takes that from them
            return False
        theirs, owners = {name, *read_names(connection, name)}, list_owners(connection, is_locking=is_locking)
        others = (each for each in owners if each not in theirs)
        has_others = any(self._roles(connection, each, "")[0] is AccessRole.OWNER for each in others)
        return not (has_others or theirs.isdisjoint(owners))

    def owners(self, connection: Connection) -> list[list[str]]:
        """Return the owners, each by all of their names."""
        named = sorted({*self._owners, *list_owners(connection)})
        return [read_names(connection, each) for each in named]

    def tell(self, connection: Connection, ruling: Ruling, turn_id: int, welcome: object, now: datetime) -> bool:
        """Return whether a sender who is not admitted is to be told so: once, and with a code whenever they ask.

        Args:
            welcome: The payloads that tell them, in the chat of this turn, when they get access.
        """
        if ruling.subject is None or ruling.notice is Notice.NOTHING:
            return False
        is_first = tell_once(connection, ruling.subject, now)
        if ruling.code is None:
            return is_first
        if not is_first and not ruling.is_asking:
            return False
        payloads = welcome if isinstance(welcome, list | tuple) else []
        return issue_code(connection, ruling.subject.name, ruling.code, ruling.name, turn_id, payloads, now)

    def approve(
        self,
        connection: Connection,
        what: str,
        by: str,
        now: datetime,
        *,
        owe: Owe,
        role: AccessRole = AccessRole.MEMBER,
        kind: SubjectKind | None = None,
    ) -> AccessEntry | None:
        """Admit the newcomer with a code, or a named person or chat; return None if a code is unknown or has expired.

        An owner who is admitted stays one.

        Args:
            owe: Has a newcomer told so, in the chat in which they were refused.
        """
        code = as_code(what)
        if code is None and not is_identity(what):
            return None
        entry = AccessEntry(Subject.of(what, kind), None) if code is None else take_code(connection, code, now, owe)
        if entry is None:
            return None
        if entry.subject.kind is SubjectKind.PERSON and entry.subject.name in list_owners(connection):
            role = AccessRole.OWNER
        grant(connection, entry.subject, role, by, now)
        return AccessEntry(entry.subject, role, source=by, name=entry.name)

    def revoke(
        self, connection: Connection, name: str, by: str, now: datetime, *, kind: SubjectKind | None = None
    ) -> AccessEntry:
        """Block a person or a chat.

        Raises:
            BotServiceError: the settings say otherwise, or that is no name.
        """
        self.check_revocable(connection, name)
        subject = Subject.of(name, kind)
        if subject.kind is SubjectKind.PERSON:
            take_roles(connection, name)
        grant(connection, subject, AccessRole.BLOCKED, by, now)
        return AccessEntry(subject, AccessRole.BLOCKED, source=by)

    def check_revocable(self, connection: Connection, name: str) -> None:
        """Check that a person or a chat can be blocked.

        Raises:
            BotServiceError: the setting OWNERS says otherwise, or that is no name.
        """
        if {name, *read_names(connection, name)} & self._owners:
            raise BotServiceError(f"{name} is an owner by the setting OWNERS: take them out there")
        if not is_identity(name):
            raise BotServiceError(f"{name!r} names nobody: say platform:id, such as telegram:42")

    def entries(self, connection: Connection, now: datetime) -> list[AccessEntry]:
        """Return the admitted, the blocked, and the newcomers with their codes."""
        named = [AccessEntry(Subject.of(name), AccessRole.OWNER, source="OWNERS") for name in sorted(self._owners)]
        named += [AccessEntry(Subject.of(name), AccessRole.MEMBER, source="ALLOWED") for name in sorted(self._allowed)]
        return [*named, *list_entries(connection, now)]

    def rule(
        self, connection: Connection, message: InboundMessage, context_keys: Mapping[str, str], now: datetime
    ) -> Ruling:
        """Return what `judge` does, as of a transaction."""
        author, chat = message.author, chat_name(context_keys)
        if author is not None and _is_own(author.platform, author.id):
            return Ruling(is_admitted=True, role=AccessRole.OWNER)
        person = person_name(author)
        role, of_chat = self._roles(connection, person, chat)
        command = message.command.name if message.command is not None else None
        may_be_blocked = role is AccessRole.BLOCKED or self._may_hide_blocked(connection, message, person, chat)
        if may_be_blocked and not message.is_private:
            return Ruling(is_admitted=False, role=role)  # the others need not hear of it
        # Whoever writes to a channel comes alone; a channel that has access, or blocked, brings all who do.
        is_alone = is_direct_topic(context_keys) and of_chat is None and not self._is_let_in(connection, chat, of_chat)
        if message.is_private or is_guest(context_keys) or is_alone:
            return self._judge_person(connection, message, person, role, command, now)
        if self._is_let_in(connection, chat, of_chat):
            return Ruling(is_admitted=True, role=AccessRole.OWNER if of_chat is AccessRole.OWNER else role)
        if command == _LETTING_IN and role is not None:
            return Ruling(is_admitted=True, role=role)
        notice = Notice.GROUP if message.is_addressed and of_chat is not AccessRole.BLOCKED else Notice.NOTHING
        return Ruling(is_admitted=False, role=role, notice=notice, subject=Subject(SubjectKind.CHAT, chat))

    def _may_hide_blocked(self, connection: Connection, message: InboundMessage, name: str, chat: str) -> bool:
        """Return whether a blocked person may write in the name of a channel or a group; owners can admit a channel."""
        if not message.is_anonymous:
            return False
        _, of_channel = read_roles(connection, [], name)
        is_let_in = name != chat and (of_channel in (AccessRole.OWNER, AccessRole.MEMBER) or name in self._allowed)
        return not is_let_in and (of_channel is AccessRole.BLOCKED or is_anybody_blocked(connection))

    def _judge_person(
        self,
        connection: Connection,
        message: InboundMessage,
        person: str,
        role: AccessRole | None,
        command: str | None,
        now: datetime,
    ) -> Ruling:
        if role in (AccessRole.OWNER, AccessRole.MEMBER) or (self.mode is AccessMode.OPEN and role is None):
            return Ruling(is_admitted=True, role=role)
        if not message.is_private:
            return Ruling(is_admitted=False, role=role)  # the others need not hear of it
        subject = Subject(SubjectKind.PERSON, person) if person else None
        if self.mode is not AccessMode.PAIRING or role is AccessRole.BLOCKED or subject is None:
            return Ruling(is_admitted=False, role=role, notice=Notice.REFUSED, subject=subject)
        return Ruling(
            is_admitted=False,
            notice=Notice.CODE,
            subject=subject,
            code=read_code(connection, person, now) or new_code(),
            name=message.author.name if message.author is not None else None,
            is_asking=command in _KNOCKING,
        )

    def _is_let_in(self, connection: Connection, chat: str, of_chat: AccessRole | None) -> bool:
        """Return whether the service answers in a group: it was admitted, or a member has brought the service there."""
        if of_chat is not None:
            return of_chat is not AccessRole.BLOCKED
        if self.mode is AccessMode.OPEN or chat in self._allowed:
            return True
        inviter = read_inviter(connection, chat)
        if inviter is None:
            return False
        role, _ = self._roles(connection, inviter, chat)
        return role in (AccessRole.OWNER, AccessRole.MEMBER)

    def _roles(self, connection: Connection, person: str, chat: str) -> tuple[AccessRole | None, AccessRole | None]:
        """Return the roles of a person and of a chat."""
        names = read_names(connection, person)
        stored, of_chat = read_roles(connection, names, chat)
        known = frozenset(names)
        platform, _, number = person.partition(":")
        if known & self._owners or _is_own(platform, number):
            return AccessRole.OWNER, of_chat
        if known & self._allowed:
            stored |= {AccessRole.MEMBER}
        return next(
            (role for role in (AccessRole.BLOCKED, AccessRole.OWNER, AccessRole.MEMBER) if role in stored), None
        ), of_chat


def _is_own(platform: str | None, name: str | None) -> bool:
    return platform in _OWN_PLATFORMS and not is_browser_account(platform, name)
