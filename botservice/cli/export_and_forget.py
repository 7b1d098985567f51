"""`botservice export` and `forget`: what is stored about a conversation or a person, written out or deleted."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from botservice.cli.console import MaybeContextArgument, counted, long_work, with_storage
from botservice.core.errors import BotServiceError

if TYPE_CHECKING:
    from botservice.privacy.forgotten_counts import Forgotten
    from botservice.storage.database import Storage

_CLEANING_SECONDS = 60.0  # a large file is written again in that time, unless it is read all the while
_CLEAN = "Its bytes have left the files of the database"
_NOT_CLEAN = "The last traces leave the files of the database at its next clean-up: see docs/privacy.md"

PersonOption = Annotated[
    str | None, typer.Option(metavar="PLATFORM:ID", help="A person instead of a conversation, such as telegram:42.")
]


def export(
    context: MaybeContextArgument = None,
    person: PersonOption = None,
    archive: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --person: write a zip file with pages to read and files.")
    ] = None,
) -> None:
    """Write everything stored about a conversation or a person as JSON."""
    from botservice.cli.contexts import find_context_id, parse_person
    from botservice.devtools.conversations import export_context
    from botservice.privacy.exported_data import as_values, make_archive, read_person

    _check_one_of(context, person)

    async def read(storage: "Storage") -> Any:
        if context is not None:
            return await export_context(storage, await find_context_id(storage, context))
        return await read_person(storage, parse_person(person or ""), progress)

    if archive is not None and person is None:
        raise BotServiceError("--archive is for a person: name one with --person PLATFORM:ID")
    if archive is not None:
        _check_new(archive)
    with long_work("export", left="Nothing is written.") as progress:
        found = with_storage(read)
        if archive is not None:
            _write_archive(archive, make_archive(found, max_files_bytes=None))
        elif person is not None:
            found = as_values(found)
    typer.echo(f"{archive} is written" if archive is not None else json.dumps(found, indent=2))


def forget(
    context: MaybeContextArgument = None,
    person: PersonOption = None,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Delete a conversation, or everything about a person, for good: messages, facts, steps, files, events."""
    from botservice.cli.contexts import find_context_id, parse_person
    from botservice.devtools.conversations import forget_context
    from botservice.privacy.forgetting import forget_person

    _check_one_of(context, person)

    if context is not None:
        address = context
        number = with_storage(lambda storage: find_context_id(storage, address))
        _confirm(yes, f"Delete everything of context {number}?")
        with_storage(lambda storage: forget_context(storage, number))
        typer.echo(f"context {number} is forgotten")
        return
    author = parse_person(person or "")
    _confirm(yes, f"Delete everything of {person}, and of the accounts that are linked with it?")

    async def erase(storage: "Storage") -> "tuple[Forgotten, bool]":
        forgotten = await forget_person(storage, author)
        return forgotten, storage.is_scrubbed or await storage.scrub(patience_seconds=_CLEANING_SECONDS)

    gone, is_clean = with_storage(erase)
    typer.echo(
        f"{person} is forgotten: {counted(gone.contexts, 'conversation')} of theirs alone; in all conversations "
        f"{counted(gone.messages, 'message')}, {counted(gone.answers, 'answer')}, {counted(gone.files, 'file')}, "
        f"{counted(gone.facts, 'fact')} and {counted(gone.reminders, 'reminder')}. "
        f"What others said stays. {_CLEAN if is_clean else _NOT_CLEAN}"
    )


def _check_one_of(context: str | None, person: str | None) -> None:
    if (context is None) == (person is None):
        raise BotServiceError("say which: CONTEXT or --person PLATFORM:ID")


def _check_new(file: Path) -> None:
    """Refuse to write over what is there; a pipe or a device may be written to."""
    with _writing(file):
        is_there = file.is_file() or file.is_dir()
    if is_there:
        raise BotServiceError(f"{file} exists already: name a file that does not")


def _write_archive(file: Path, data: bytes) -> None:
    from botservice.storage.sqlite_files import write_private

    with _writing(file):
        write_private(file, data)


@contextlib.contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BotServiceError(f"cannot write {file}: {error.strerror}") from error


def _confirm(is_sure: bool, question: str) -> None:  # noqa: FBT001 - the option of the same name
    if not is_sure:
        typer.confirm(f"{question} There is no way back", abort=True)
