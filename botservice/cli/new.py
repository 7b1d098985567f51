"""`botservice new`: a folder with a bot of one's own, that answers and passes its test."""

import re
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Final

import typer

from botservice.cli.origin import origin_of_this
from botservice.errors import BotServiceError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SUFFIX: Final = ".jinja"
_HIDDEN: Final = ("env.example", "gitignore")  # such files would have an effect where they are kept


def new(
    folder: Annotated[Path, typer.Argument(metavar="NAME", help="The new folder; its last part is the bot's name.")],
) -> None:
    """Make a folder with a bot of your own: bot.py with a tool, a test, and what it takes to deploy it."""
    if not _NAME.fullmatch(folder.name):
        raise BotServiceError(
            f"a bot's name is a letter, then letters, digits, - and _, 64 at most; not {folder.name!r}"
        )
    if folder.is_file() or (folder.is_dir() and any(folder.iterdir())):
        raise BotServiceError(f"{folder} is there already, and not empty: choose another name")
    try:
        made = _write(folder)
    except OSError as error:
        raise BotServiceError(f"{folder} cannot be written: {error.strerror}") from error
    typer.echo(f"{folder} is made: {', '.join(made)}\n")
    typer.echo(f"  cd {folder}")
    typer.echo("  botservice serve --app bot:service --reload    # http://127.0.0.1:8000/, without any key or account")
    typer.echo("\nREADME.md says how to test it, to give it a model and tokens, and to deploy it.")


def _write(folder: Path) -> list[str]:
    from jinja2 import Environment, StrictUndefined

    origin = origin_of_this()
    values = {
        "name": folder.name,
        "requirement": origin.requirement,
        "can_be_deployed": origin.is_elsewhere,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
    }
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - no markup
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for name, template in sorted(_templates()):
        (folder / name).write_text(environment.from_string(template).render(values), encoding="utf-8")
        made.append(name)
    return made


def _templates() -> Iterator[tuple[str, str]]:
    for each in (files("botservice.cli") / "template").iterdir():
        if each.name.endswith(_SUFFIX):
            name = each.name.removesuffix(_SUFFIX)
            yield f".{name}" if name in _HIDDEN else name, each.read_text(encoding="utf-8")
