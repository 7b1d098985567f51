"""/approve, /revoke and /access: owners decide who is let in, members bring the service into groups."""

from typing import Final

from sqlalchemy import Connection

from botservice.commands.command import Command
from botservice.errors import BotServiceError
from botservice.people.access_records import as_code
from botservice.people.access_values import AccessRole, Entry, Kind
from botservice.people.names import chat_name, person_name
from botservice.policies import is_identity
from botservice.quoting import show_plain
from botservice.turns.commands import CommandAnswer, CommandRequest

_LONGEST_NAME: Final = 40
_FOR_OWNERS: Final = CommandAnswer("Only an owner may do that. The setting OWNERS names the first ones.")
_APPROVE_HOW: Final = CommandAnswer(
    "Say whom: /approve CODE, with the code that a newcomer has, or /approve telegram:42. “owner” behind it makes an "
    "owner. In a group, /approve alone lets the group in."
)
_REVOKE_HOW: Final = CommandAnswer("Say whom: /revoke telegram:42, as /access lists them. In a group: /revoke alone.")
_NOBODY: Final = CommandAnswer(
    "Nobody has this code, or its hour is over: /start gives the newcomer another one. /access lists who waits."
)


async def _approve(request: CommandRequest) -> CommandAnswer:
    words = request.call.arguments.split()
    role = AccessRole.OWNER if words[-1:] == [AccessRole.OWNER.value] else AccessRole.MEMBER
    what = "".join(words[:-1] if role is AccessRole.OWNER else words)
    is_here = not what and not request.message.is_private
    if request.role is not AccessRole.OWNER and not (
        is_here and role is AccessRole.MEMBER and request.role is AccessRole.MEMBER
    ):
        return _FOR_OWNERS
    if is_here:
        what = chat_name(request.context.context_keys)
    elif not what:
        return _APPROVE_HOW
    code, access, by = as_code(what), request.access, person_name(request.message.author)
    if code is None and not is_identity(what):
        return _NOBODY
    label = "This group" if is_here else f"`{what}`"
    if code is not None:
        entries = await request.context.storage.read(lambda connection: access.entries(connection, request.now))
        newcomer = next((entry for entry in entries if entry.code == code), None)
        if newcomer is None:
            return _NOBODY
        label = _label(newcomer)

    def apply(connection: Connection) -> None:
        access.approve(connection, what, by, request.now, role=role, kind=Kind.CHAT if is_here else None)

    return CommandAnswer(f"{label} is let in{' as an owner' if role is AccessRole.OWNER else ''}.", apply=apply)


async def _revoke(request: CommandRequest) -> CommandAnswer:
    if request.role is not AccessRole.OWNER:
        return _FOR_OWNERS
    name = request.call.arguments.strip()
    if not name and request.message.is_private:
        return _REVOKE_HOW
    kind = None if name else Kind.CHAT
    name = name or chat_name(request.context.context_keys)
    access, by = request.access, person_name(request.message.author)
    try:
        access.check_revocable(name)
    except BotServiceError as error:
        return CommandAnswer(f"That cannot be: {error}.")

    def apply(connection: Connection) -> None:
        access.revoke(connection, name, by, request.now, kind=kind)

    return CommandAnswer(f"`{name}` is let in no more. /approve {name} lets them in again.", apply=apply)


async def _list(request: CommandRequest) -> CommandAnswer:
    if request.role is not AccessRole.OWNER:
        return _FOR_OWNERS
    if not request.message.is_private:
        return CommandAnswer("That is for you alone: write /access to me in a private chat.")
    access = request.access
    entries = await request.context.storage.read(lambda connection: access.entries(connection, request.now))
    lines = [f"Access is {access.mode}."]
    lines += [f"- {_line(entry)}" for entry in entries]
    return CommandAnswer("\n".join(lines))


def _line(entry: Entry) -> str:
    if entry.role is None:
        return f"{_label(entry)} waits: /approve {entry.code}"
    source = f" (by {entry.source})" if entry.source else ""
    return f"`{entry.subject.name}`, {entry.subject.kind}: {entry.role}{source}"


def _label(entry: Entry) -> str:
    """Return who somebody is; what they call themselves proves nothing."""
    name = show_plain((entry.name or "")[:_LONGEST_NAME], "")
    return f"`{entry.subject.name}`, who is called “{name}”," if name else f"`{entry.subject.name}`"


APPROVE: Final = Command("approve", _approve, is_listed=False)
REVOKE: Final = Command("revoke", _revoke, is_listed=False)
ACCESS: Final = Command("access", _list, is_listed=False)
