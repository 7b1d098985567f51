"""Commands about people: owners decide who has access and which roles, members bring the service into groups."""

from typing import Final

from botservice.commands.command import Command, CommandRefused, require_owner
from botservice.core.errors import BotServiceError, SetBySettings
from botservice.core.formatted_text import FormattedText
from botservice.core.message_references import ReferenceKind
from botservice.core.policies import OWNER_ROLE, is_identity
from botservice.core.quoting import shortened
from botservice.people.access_queries import is_platform_known
from botservice.people.access_values import AccessEntry, AccessRole, SubjectKind
from botservice.people.identities import as_code
from botservice.people.names import chat_name, person_name, platform_of, transport_of
from botservice.storage.database import Connection
from botservice.texts.formatted import below, bulleted, line, quoted
from botservice.texts.formatted import code as code_span
from botservice.turns.commands import CommandAnswer, CommandRequest
from botservice.turns.delivery_queries import owe_in_turn

_LONGEST_NAME: Final = 40
_KINDS: Final = {SubjectKind.PERSON: "access.person", SubjectKind.CHAT: "access.chat"}
_ROLES: Final = {
    AccessRole.OWNER: "access.owner",
    AccessRole.MEMBER: "access.member",
    AccessRole.BLOCKED: "access.blocked",
}


async def _approve(request: CommandRequest) -> CommandAnswer:
    words = request.call.arguments.split()
    role = AccessRole.OWNER if words[-1:] == [AccessRole.OWNER.value] else AccessRole.MEMBER
    named = words[:-1] if role is AccessRole.OWNER else words
    # A code may be written in groups of letters; the name of a person or a chat is one word.
    what = "".join(named) if as_code("".join(named)) is not None else " ".join(named)
    is_here = not what and not request.message.is_private
    if not (is_here and role is AccessRole.MEMBER and request.role is AccessRole.MEMBER):
        require_owner(request)
    if is_here:
        what = chat_name(request.context.context_keys)
    elif not what:
        return CommandAnswer(request.say("approve.how"))
    code, access, by = as_code(what), request.access, person_name(request.message.author)
    if code is None and not (is_identity(what) and await _is_platform_known(what, request)):
        return CommandAnswer(request.say("approve.how" if ":" in what else "approve.nobody"))
    label = line(request.say("approve.this_group"), " (", code_span(what), ")") if is_here else line(code_span(what))
    if code is not None:
        entries = await request.context.storage.read(lambda connection: access.entries(connection, request.now))
        newcomer = next((entry for entry in entries if entry.code == code), None)
        if newcomer is None:
            return CommandAnswer(request.say("approve.nobody"))
        label = _label(newcomer, request)

    def apply(connection: Connection) -> None:
        kind = SubjectKind.CHAT if is_here else None
        access.approve(connection, what, by, request.now, owe=owe_in_turn, role=role, kind=kind)

    key = "approve.done_owner" if role is AccessRole.OWNER else "approve.done"
    return CommandAnswer(request.say(key, who=label), apply=apply)


async def _revoke(request: CommandRequest) -> CommandAnswer:
    require_owner(request)
    name = request.call.arguments.strip()
    kind = None if name or request.message.is_private else SubjectKind.CHAT
    name = name if kind is None else chat_name(request.context.context_keys)
    if not (is_identity(name) and await _is_platform_known(name, request)):
        return CommandAnswer(request.say("revoke.how"))
    access, by = request.access, person_name(request.message.author)
    try:
        await request.context.storage.read(lambda connection: access.check_revocable(connection, name))
    except BotServiceError:
        return CommandAnswer(request.say("revoke.by_setting", name=name))
    await _refuse_last_owner(request, name)

    def apply(connection: Connection) -> None:
        _check_last_owner(connection, request, name)
        access.revoke(connection, name, by, request.now, kind=kind)

    return CommandAnswer(request.say("revoke.done", name=name), apply=apply)


async def _refuse_last_owner(request: CommandRequest, name: str) -> None:
    """Refuse a command that would leave no owner, unless the person runs the service.

    Raises:
        CommandRefused: it would.
    """
    access = request.access
    if access.runs_service(request.message.author):
        return
    if await request.context.storage.read(lambda connection: access.is_last_owner(connection, name)):
        raise CommandRefused(request.say("access.last_owner", name=name))


def _check_last_owner(connection: Connection, request: CommandRequest, name: str) -> None:
    """Check the same where it is done: another owner may be on their way out.

    Raises:
        BotServiceError: nobody would be left.
    """
    access = request.access
    if not access.runs_service(request.message.author) and access.is_last_owner(connection, name, is_locking=True):
        raise BotServiceError(f"{name} is the only owner now")


async def _is_platform_known(name: str, request: CommandRequest) -> bool:
    """Return whether there is the platform of a name: what is said of another one would be of no effect."""
    platform, author = platform_of(name), request.message.author
    if platform in (transport_of(request.context.context_keys), author and author.platform):
        return True
    return await request.context.storage.read(lambda connection: is_platform_known(connection, platform))


async def _list(request: CommandRequest) -> CommandAnswer:
    require_owner(request)
    if not request.message.is_private:
        return CommandAnswer(request.say("access.in_private"))
    access = request.access
    entries = await request.context.storage.read(lambda connection: access.entries(connection, request.now))
    mode = request.say("access.mode", mode=str(access.mode))
    return CommandAnswer(below(mode, bulleted(_line(entry, request) for entry in entries), is_close=True))


async def _set_roles(request: CommandRequest) -> CommandAnswer:
    require_owner(request)
    words, access, storage = request.call.arguments.split(), request.access, request.context.storage
    name = words.pop(0) if words and ":" in words[0] else _find_replied_to(request)
    roles, by = [each.lower() for each in words], person_name(request.message.author)
    if not (is_identity(name) and await _is_platform_known(name, request)):
        return CommandAnswer(request.say("role.how"))
    try:
        await storage.read(lambda connection: access.check_roles(connection, name, roles))
    except SetBySettings as error:
        return CommandAnswer(request.say("role.by_setting", name=code_span(name), setting=error.setting))
    except BotServiceError:
        return CommandAnswer(request.say("role.how"))
    is_demoted = OWNER_ROLE not in roles
    if is_demoted:
        await _refuse_last_owner(request, name)

    def apply(connection: Connection) -> None:
        if is_demoted:
            _check_last_owner(connection, request, name)
        access.set_roles(connection, name, roles, by, request.now)

    done = request.say("role.done", who=code_span(name), roles=code_span(", ".join(dict.fromkeys(roles))))
    return CommandAnswer(done, apply=apply)


def _find_replied_to(request: CommandRequest) -> str:
    """Return the person who sent the message of this chat to which a command replies, or an empty name."""
    replies = (each for each in request.message.references if each.kind is ReferenceKind.REPLY and each.external_id)
    return next((person_name(each.author) for each in replies if not each.is_of_assistant and not each.is_sent_on), "")


async def _list_roles(request: CommandRequest) -> CommandAnswer:
    access, storage, author = request.access, request.context.storage, request.message.author
    if request.role is not AccessRole.OWNER or not request.message.is_private:
        own = await storage.read(lambda connection: access.tool_roles(connection, author))
        return CommandAnswer(request.say("roles.own", roles=code_span(", ".join(sorted(own)) or "blocked")))
    held = await storage.read(lambda connection: access.list_roles(connection, request.now))
    lines = (request.say("roles.entry", name=name, roles=", ".join(sorted(roles))) for name, roles in held.items())
    return CommandAnswer(bulleted(lines) if held else request.say("roles.none"))


def _line(entry: AccessEntry, request: CommandRequest) -> FormattedText:
    if entry.role is None:
        return request.say("access.waits", who=_label(entry, request), code=entry.code or "")
    kind, role = request.say(_KINDS[entry.subject.kind]), request.say(_ROLES[entry.role])
    if not entry.source:
        return request.say("access.entry", name=entry.subject.name, kind=kind, role=role)
    return request.say("access.entry_by", name=entry.subject.name, kind=kind, role=role, source=entry.source)


def _label(entry: AccessEntry, request: CommandRequest) -> FormattedText:
    """Return a person's name with their id: a name alone proves nothing."""
    called, name = shortened((entry.name or "").strip(), _LONGEST_NAME), entry.subject.name
    return request.say("access.called", name=name, called=quoted(called)) if called else line(code_span(name))


APPROVE: Final = Command("approve", _approve, is_listed=False)
REVOKE: Final = Command("revoke", _revoke, is_listed=False)
ROLE: Final = Command("role", _set_roles, is_listed=False)
ROLES: Final = Command("roles", _list_roles, is_listed=False, is_personal=True)
ACCESS: Final = Command("access", _list, is_listed=False, is_personal=True)
