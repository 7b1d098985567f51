"""The commands about conversations: which there are, pausing one, and finding the one that an argument names."""

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from botservice.cli.console import JsonLinesOption, counted, printable, with_storage
from botservice.core.chat_addresses import CHAT_FORMS, ChatAddress
from botservice.core.errors import BotServiceError

if TYPE_CHECKING:
    from botservice.core.messages import Author
    from botservice.storage.database import Connection, Storage

contexts_cli = typer.Typer(help="List the conversations; pause one while a person takes over.")
ChatArgument = Annotated[str, typer.Argument(metavar="CHAT", help=CHAT_FORMS)]


@contexts_cli.callback()
def contexts(command: typer.Context, *, as_json: JsonLinesOption = False) -> None:
    """List the conversations, those with the newest messages first."""
    from botservice.devtools.conversations import list_contexts
    from botservice.people.names import key_text

    if command.invoked_subcommand is not None:
        return
    for each in with_storage(list_contexts):
        if as_json:
            typer.echo(json.dumps(each.as_dict()))
        else:
            ordered = sorted(each.keys.items(), key=lambda pair: (pair[0] != "transport", pair[0]))
            keys = " ".join(f"{key}={printable(key_text(value))}" for key, value in ordered)
            last = f"{each.last_message_at:%Y-%m-%d %H:%M}" if each.last_message_at else "-"
            typer.echo(f"{each.id:>6}  {counted(each.message_count, 'message'):>16}  {last:<16}  {keys}")


@contexts_cli.command()
def pause(
    chat: ChatArgument,
    lasts: Annotated[
        str | None, typer.Option("--for", metavar="DURATION", help="How long, such as 30m, 1h or 2d.")
    ] = None,
) -> None:
    """Keep what is said in a conversation without answering it, until it is resumed."""
    from botservice.conversation.pausing import PAUSE_FORMS, Pause, read_duration, set_pause

    duration = None if lasts is None else read_duration(lasts)
    if lasts is not None and duration is None:
        raise BotServiceError(f"--for must be {PAUSE_FORMS}, not {lasts!r}")
    address = parse_chat(chat)

    def write(connection: "Connection", now: datetime) -> int:
        number = _find(connection, address, chat, now)
        until = None if duration is None else now + duration
        set_pause(connection, number, Pause(now, until, is_whole=True))
        return number

    number = with_storage(lambda storage: storage.write(lambda connection: write(connection, storage.now())))
    typer.echo(f"context {number} is paused{'' if lasts is None else f' for {lasts}'}")


@contexts_cli.command()
def resume(chat: ChatArgument) -> None:
    """Answer again in a conversation; what was said meanwhile stays in its history."""
    from botservice.conversation.pausing import read_pause, set_pause

    address = parse_chat(chat)

    def write(connection: "Connection", now: datetime) -> str:
        number = _find(connection, address, chat)
        was_paused = read_pause(connection, number, now) is not None
        set_pause(connection, number, None)
        pause = read_pause(connection, number, now)
        if pause is not None:
            return f"context {number} stays paused with its whole chat: resume context {pause.chat_id}"
        return f"context {number} is answered again" if was_paused else f"context {number} was not paused"

    typer.echo(with_storage(lambda storage: storage.write(lambda connection: write(connection, storage.now()))))


def parse_chat(chat: str) -> ChatAddress:
    """Return the conversation that an operator names."""
    try:
        return ChatAddress.parse(chat)
    except ValueError as error:
        raise BotServiceError(f"{chat!r}: {error}") from None


def _find(connection: "Connection", address: ChatAddress, name: str, now: datetime | None = None) -> int:
    """Return the id of the context of a chat.

    Args:
        now: Where a group or channel has none, because people write in its threads, one is made at this moment.
    """
    from botservice.conversation.context_keys import ContextKeys
    from botservice.conversation.queries import find_context, find_or_insert_context
    from botservice.devtools.queries import check_context
    from botservice.people.names import chat_keys

    if address.number is not None:
        return int(check_context(connection, address.number).id)
    keys = ContextKeys.of(address.keys)
    if now is not None and chat_keys(address.keys) is None and not address.must_write_first:
        return find_or_insert_context(connection, keys, now)
    found = find_context(connection, keys)
    if found is None:
        raise BotServiceError(f"nobody has written in {name} yet: `botservice contexts` lists the conversations")
    return found


_MOST_DIGITS = 18  # what a database's integer holds for certain
_HOW = "name it by its number, as `botservice contexts` lists it, or by its keys, such as telegram:42 or chat_id=42"


async def find_context_id(storage: "Storage", address: str) -> int:
    """Return the id of the one conversation that an address names.

    Args:
        address: A number; `transport:value`, where one of the keys has that value; or `key=value`, also several.
    """
    from botservice.devtools.conversations import list_contexts
    from botservice.devtools.queries import check_context

    if address.isdecimal():
        if len(address) > _MOST_DIGITS:
            raise BotServiceError(f"there is no context {address}: `botservice contexts` lists them")
        number = int(address)
        await storage.read(lambda connection: check_context(connection, number))
        return number
    named = await list_contexts(storage, having=_some_value(address))
    found = [each.id for each in named if _matches(address, each.keys)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise BotServiceError(f"no context is meant by {address!r}: {_HOW}")
    numbers = ", ".join(map(str, sorted(found)))
    raise BotServiceError(f"{address!r} means more than one context: {numbers}. Take one of these numbers")


def parse_person(text: str) -> "Author":
    """Return the identity that `platform:id` names."""
    from botservice.core.messages import Author

    platform, _, person_id = text.partition(":")
    if not platform or not person_id:
        raise BotServiceError(f"--person must be platform:id, such as telegram:42, not {text!r}")
    return Author(platform, person_id)


def _some_value(address: str) -> str:
    """Return a value that the keys have which an address means."""
    if "=" in address:
        address = address.replace(",", " ").split()[0]
        return address.partition("=")[2]
    return address.partition(":")[2]


def _matches(address: str, keys: Mapping[str, str]) -> bool:
    from botservice.people.names import key_text, transport_of

    if "=" in address:
        pairs = [part.partition("=") for part in address.replace(",", " ").split()]
        return all(name in keys and key_text(keys[name]) == value for name, _, value in pairs)
    transport, _, value = address.partition(":")
    named = [key_text(each) for name, each in keys.items() if name != "transport"]
    return transport_of(keys) == transport and value in named
