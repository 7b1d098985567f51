"""`botservice send`: the bot's own words in a chat, from a script."""

import mimetypes
from pathlib import Path
from typing import Annotated

import typer

from botservice.cli.console import load_settings, open_storage, run
from botservice.cli.contexts import parse_chat
from botservice.core.chat_addresses import CHAT_FORMS
from botservice.core.errors import BotServiceError, StorageError
from botservice.core.messages import Attachment


def send(
    chat: Annotated[str, typer.Argument(metavar="CHAT", help=CHAT_FORMS)],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text, in Markdown.")],
    file: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="A file to send with it; may be repeated.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="A repeated message with the same key is not sent again.")] = None,
) -> None:
    """Send a message to a chat as the bot, and print its id. A running service delivers it."""
    from botservice.people.access import Access
    from botservice.turns.proactive_messages import checked_words, find_chat, prepare_message
    from botservice.turns.proactive_messages import send as store

    settings = load_settings()
    address = parse_chat(chat)
    files = checked_words(text, [_attachment(each) for each in file or ()], key)

    async def work() -> int | None:
        async with open_storage(settings) as storage:
            now = storage.now()
            context_id = await storage.write(lambda connection: find_chat(connection, address, chat, now))
            new = await prepare_message(text, files, now)
            return (await store(storage, Access.of(settings), context_id, new, key=key)).message.id

    try:
        typer.echo(run(work()))
    except StorageError as error:
        raise BotServiceError(f"nothing is sent: {error}") from error


def _attachment(path: Path) -> Attachment:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BotServiceError(f"cannot read {path}: {error.strerror}") from error
    return Attachment(mimetypes.guess_type(path.name)[0] or "application/octet-stream", name=path.name, data=data)
