"""The commands about who has access, and about what was used. They work while the service runs."""

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from botservice.cli.console import JsonLinesOption, load_settings, printable, read_day, with_storage
from botservice.core.errors import BotServiceError
from botservice.core.policies import OWNER_ROLE

if TYPE_CHECKING:
    from botservice.people.access import Access
    from botservice.people.access_values import AccessEntry, SubjectKind
    from botservice.people.usage import UsageBy, UsageLine
    from botservice.storage.database import Connection

access_cli = typer.Typer(help="List who has access and who is waiting; grant or revoke access.")
ChatOption = Annotated[bool, typer.Option("--chat", help="PLATFORM:ID is a group.")]
_BY = "command line"


@access_cli.callback()
def access(command: typer.Context, *, as_json: JsonLinesOption = False) -> None:
    """List who has access, who is blocked, and which newcomers wait with a code."""
    if command.invoked_subcommand is not None:
        return
    gate = _access()
    entries = with_storage(lambda storage: storage.read(lambda connection: gate.entries(connection, storage.now())))
    if not as_json:
        typer.echo(f"access is {gate.mode}")
    for each in entries:
        typer.echo(json.dumps(_as_dict(each)) if as_json else _line(each))


@access_cli.command()
def approve(
    who: Annotated[str, typer.Argument(metavar="CODE|PLATFORM:ID", help="A newcomer's code, or a person or a group.")],
    *,
    owner: Annotated[bool, typer.Option("--owner", help="Make the person an owner.")] = False,
    chat: ChatOption = False,
) -> None:
    """Grant access; a newcomer is notified in their chat."""
    from botservice.people.access_values import AccessRole
    from botservice.turns.delivery_queries import owe_in_turn

    gate = _access()
    role = AccessRole.OWNER if owner else AccessRole.MEMBER

    is_known = _check_platform(who)
    entry = with_storage(
        lambda storage: storage.write(
            lambda connection: gate.approve(
                connection, who, _BY, storage.now(), owe=owe_in_turn, role=role, kind=_kind(chat)
            )
        )
    )
    if entry is None:
        raise BotServiceError(f"{who!r} is nobody's code now, and no platform:id: `botservice access` lists who waits")
    name = f" ({printable(entry.name)})" if entry.name else ""
    typer.echo(
        f"{entry.subject.name}{name} has access as {'an owner' if owner else 'a member'}{_unknown_platform(is_known)}"
    )


@access_cli.command()
def revoke(
    who: Annotated[str, typer.Argument(metavar="PLATFORM:ID", help="A person or a group, such as telegram:42.")],
    *,
    chat: ChatOption = False,
) -> None:
    """Block a person or a group."""
    gate = _access()
    with_storage(lambda storage: storage.read(lambda connection: gate.check_revocable(connection, who)))
    is_known, left = _check_platform(who), _without_owner(gate, who)
    with_storage(
        lambda storage: storage.write(
            lambda connection: gate.revoke(connection, who, _BY, storage.now(), kind=_kind(chat))
        )
    )
    typer.echo(f"{who} no longer has access{_unknown_platform(is_known)}{left}")


@access_cli.command()
def role(
    who: Annotated[str, typer.Argument(metavar="PLATFORM:ID", help="A person, such as telegram:42.")],
    roles: Annotated[list[str], typer.Argument(help="owner, member, guest, or names of your own.")],
) -> None:
    """Give a person these roles, and take away all others."""
    gate, is_known = _access(), _check_platform(who)
    left = "" if OWNER_ROLE in roles else _without_owner(gate, who)
    with_storage(
        lambda storage: storage.write(lambda connection: gate.set_roles(connection, who, roles, _BY, storage.now()))
    )
    typer.echo(f"{who} now has: {', '.join(roles)}{_unknown_platform(is_known)}{left}")


def usage(
    by: Annotated[str, typer.Option(help="person, chat, model or day.")] = "person",
    since: Annotated[
        str | None, typer.Option(metavar="YYYY-MM-DD", help="From this day on; by default from the 1st of this month.")
    ] = None,
    *,
    as_json: JsonLinesOption = False,
) -> None:
    """List tokens and cost by person, chat, model or day (UTC)."""
    from botservice.people.usage_queries import list_usage

    subject, start = _usage_by(by), _day(since)

    def query(connection: "Connection") -> "tuple[list[UsageLine], UsageLine]":
        return list_usage(connection, subject, start), list_usage(connection, None, start)[0]

    lines, total = with_storage(lambda storage: storage.read(query, is_long=True))
    if as_json:
        for line in lines:
            typer.echo(json.dumps(line.as_dict()))
        return
    currency = load_settings().currency
    typer.echo(f"since {start:%Y-%m-%d}: calls, tokens in (of them cached), tokens out, cost in {currency}")
    for line in lines:
        typer.echo(_usage_line(line, printable(line.subject or "(nobody that is known)")))
    typer.echo(_usage_line(total, "in all"))
    if not total.cost and total.calls:
        typer.echo("No prices are known: a demo and servers of your own cost nothing; PRICES says what others do.")


def _usage_line(line: "UsageLine", name: str) -> str:
    written = f" and {line.cache_write_tokens:,} written" if line.cache_write_tokens else ""
    cached = f"({line.cached_tokens:,}{written})"
    tokens = f"{line.input_tokens:>12,} {cached}  {line.output_tokens:>12,}"
    cost = f"{line.as_dict()['cost']:,.4f}" if line.cost else "-"
    return f"{line.calls:>8,}  {tokens}  {cost:>12}  {name}"


def _usage_by(text: str) -> "UsageBy":
    from botservice.people.usage import UsageBy

    try:
        return UsageBy(text)
    except ValueError:
        raise BotServiceError(f"--by must be person, chat, model or day, not {text!r}") from None


def _day(text: str | None) -> datetime:
    from botservice.core.policies import Period
    from botservice.people.usage import period_start

    if text is None:
        return period_start(Period.MONTH, datetime.now(UTC))
    return read_day(text)


def _access() -> "Access":
    from botservice.people.access import Access

    return Access.of(load_settings())


def _check_platform(who: str) -> bool:
    """Return whether anybody is known on the platform of a name; a bot's own transport may have any."""
    from botservice.people.access_queries import is_platform_known
    from botservice.people.names import nearest_platform, platform_of

    platform = platform_of(who)
    if ":" not in who or with_storage(lambda storage: storage.read(lambda each: is_platform_known(each, platform))):
        return True
    nearest = nearest_platform(platform)
    if nearest is not None and nearest not in platform:  # a bot's own may be called telegram2
        raise BotServiceError(f"there is no platform {platform}: say {nearest}:{who.partition(':')[2]}")
    return False


def _without_owner(gate: "Access", who: str) -> str:
    """Return what to say if the person is taken out of the owners: who types here stays in charge all the same."""
    is_last = with_storage(lambda storage: storage.read(lambda connection: gate.is_last_owner(connection, who)))
    return "\nnobody else is an owner: botservice access approve PLATFORM:ID --owner" if is_last else ""


def _unknown_platform(is_known: bool) -> str:  # noqa: FBT001 - it is what the text is about
    return "" if is_known else "; nobody has written on that platform until now: is it called so?"


def _kind(is_chat: bool) -> "SubjectKind | None":  # noqa: FBT001 - the option of the same name
    from botservice.people.access_values import SubjectKind

    return SubjectKind.CHAT if is_chat else None


def _line(entry: "AccessEntry") -> str:
    name = f"  {printable(entry.name)}" if entry.name else ""
    if entry.role is None:
        return (
            f"waits    {entry.subject.kind:<6}  {entry.subject.name}{name}  {entry.code}  until {entry.until:%H:%M} UTC"
        )
    source = f"  by {printable(entry.source)}" if entry.source else ""
    roles = f"  {', '.join(entry.roles)}" if entry.roles else ""
    return f"{entry.role:<7}  {entry.subject.kind:<6}  {printable(entry.subject.name)}{roles}{source}"


def _as_dict(entry: "AccessEntry") -> dict[str, Any]:
    return {
        "kind": entry.subject.kind.value,
        "subject": entry.subject.name,
        "role": entry.role and entry.role.value,
        "roles": list(entry.roles),
        "by": entry.source,
        "name": entry.name,
        "code": entry.code,
        "until": entry.until and entry.until.isoformat(),
    }
