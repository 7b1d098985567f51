"""`botservice new`: a folder with a bot of one's own, that answers and passes its test."""

import re
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from botservice.core.errors import BotServiceError

_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_SUFFIX: Final = ".jinja"
# Such files would have an effect where they are kept.
_HIDDEN: Final = ("dockerignore", "env.example", "gitignore", "python-version")
_PROGRAM: Final = "bot.py"


class Template(StrEnum):
    """What a new bot begins with."""

    PLAIN = "plain"
    TOOLS = "tools"
    DATABASE = "database"


# What has the demo script call a tool of it.
_EXAMPLES: Final = {Template.PLAIN: "roll 20", Template.TOOLS: "order pizza 2", Template.DATABASE: "add_item milk"}


class HostingPlace(StrEnum):
    """Where a bot can be run."""

    DOCKER = "docker"
    HEROKU = "heroku"
    RENDER = "render"
    FLY = "fly"
    RAILWAY = "railway"
    KUBERNETES = "kubernetes"
    SYSTEMD = "systemd"


def new(
    path: Annotated[str, typer.Argument(metavar="NAME", help="The new folder; its last part is the bot's name.")],
    template: Annotated[
        str, typer.Option(metavar="TEMPLATE", help="plain; tools (with approval); database (with a table).")
    ] = Template.PLAIN,
    deploy: Annotated[
        str,
        typer.Option(metavar="PLACE,…", help="Files for docker, heroku, render, fly, railway, kubernetes, systemd."),
    ] = "",
) -> None:
    """Create a folder with a bot of your own: bot.py with a tool, a test, and files for its deployment."""
    if not path.strip():
        raise BotServiceError("name the new folder: botservice new mybot; or “.” for the current one")
    folder = Path(path)
    name = folder.name or folder.resolve().name
    if not _NAME.fullmatch(name):
        raise BotServiceError(f"a bot's name is a letter, then letters, digits, - and _, 64 at most; not {name!r}")
    chosen, places = _template(template), _places(deploy)
    is_there = bool(places) and (folder / _PROGRAM).is_file()
    if not is_there and (folder.is_file() or (folder.is_dir() and any(folder.iterdir()))):
        raise BotServiceError(f"{folder} is there already, and not empty: choose another name")
    parts = [*([] if is_there else ["common", chosen.value]), *(f"deploy/{each}" for each in places)]
    try:
        made = _write(folder, _rendered(parts, _values(name, chosen)))
    except OSError as error:
        raise BotServiceError(f"{folder} cannot be written: {error.strerror}") from error
    typer.echo(f"{folder} {'has got' if is_there else 'is made'}: {', '.join(made)}")
    if not is_there:
        typer.echo(f"\n  cd {folder}")
        typer.echo("  botservice serve --reload --open       # http://127.0.0.1:8000/, without any key or account")
        typer.echo("  pip install -r requirements-dev.txt    # what its test needs")
        typer.echo("  python -m pytest")
        typer.echo("\nREADME.md says how to give it a model and tokens, and how to deploy it.")


def _template(text: str) -> Template:
    try:
        return Template(text)
    except ValueError:
        raise BotServiceError(f"--template must be {', '.join(Template)}, not {text!r}") from None


def _places(text: str) -> Sequence[HostingPlace]:
    names = [each.strip() for each in text.split(",") if each.strip()]
    try:
        return list(dict.fromkeys(map(HostingPlace, names)))
    except ValueError:
        raise BotServiceError(
            f"--deploy takes {', '.join(HostingPlace)}, with commas between them; not {text!r}"
        ) from None


def _values(name: str, template: Template) -> Mapping[str, Any]:
    from botservice.cli.installation import origin_of_this

    origin = origin_of_this()
    return {
        "name": name,
        "slug": name.lower().replace("_", "-").strip("-"),
        "template": template.value,
        "example": _EXAMPLES[template],
        "requirement": origin.requirement,
        "can_be_deployed": origin.is_elsewhere,
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
    }


def _rendered(parts: Sequence[str], values: Mapping[str, Any]) -> dict[str, str]:
    """Return the text of each file that parts of the templates make."""
    from importlib.resources import files

    from jinja2 import Environment, StrictUndefined

    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)  # noqa: S701 - no markup
    root = files("botservice.cli") / "template"
    found = {file.name: file for part in parts for file in root.joinpath(*part.split("/")).iterdir()}
    texts = {name: found[name].read_text(encoding="utf-8") for name in sorted(found) if name.endswith(_SUFFIX)}
    return {_name(name, values): environment.from_string(text).render(values) for name, text in texts.items()}


def _name(template: str, values: Mapping[str, Any]) -> str:
    name = template.removesuffix(_SUFFIX)
    if name == "bot.service":
        return f"{values['slug']}.service"
    return f".{name}" if name in _HIDDEN else name


def _write(folder: Path, texts: Mapping[str, str]) -> list[str]:
    """Write files, of which none may be there; return their names."""
    for name in texts:
        if (folder / name).exists():
            raise BotServiceError(f"{folder / name} is there already: nothing was written")
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        with (folder / name).open("x", encoding="utf-8") as file:
            file.write(text)
    return list(texts)
