"""Which bot a command serves: the one that is named, the one of bot.py in the current folder, or the built-in agent."""

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from botservice.config.settings import Settings

_FILE: Final = "bot.py"
_SERVICE: Final = "service"
_LOOKS_ASSIGNED: Final = re.compile(rf"^{_SERVICE}\s*[:=]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class OwnBot:
    """A bot of one's own.

    Attributes:
        name: Where it is, as `module:service`.
        source: What names it, for errors: an option, a setting or a file.
    """

    name: str
    source: str


def find_own_bot(app: str | None, settings: "Settings", folder: Path | None = None) -> OwnBot | None:
    """Return the bot of --app, of BOT_APP, or of a bot.py in the folder that assigns `service`; None for none of them.

    The file is read and not run.
    """
    if app is not None:
        return OwnBot(app, f"--app {app}")
    if settings.bot_app is not None:
        return OwnBot(settings.bot_app, f"BOT_APP={settings.bot_app}")
    if _assigns_service((folder or Path.cwd()) / _FILE):
        return OwnBot(f"bot:{_SERVICE}", f"{_FILE} here")
    return None


def _assigns_service(file: Path) -> bool:
    """Return whether a module assigns `service` at its top level; importing it then names what is wrong with it."""
    try:
        source = file.read_bytes()
    except OSError:
        return False
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return _LOOKS_ASSIGNED.search(source.decode("utf-8", "replace")) is not None
    targets = [
        target
        for statement in tree.body
        for target in (statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)])
        if isinstance(statement, ast.Assign | ast.AnnAssign) and getattr(statement, "value", None) is not None
    ]
    return any(isinstance(each, ast.Name) and each.id == _SERVICE for target in targets for each in _names(target))


def _names(target: ast.expr | None) -> list[ast.expr]:
    if isinstance(target, ast.Tuple | ast.List):
        return list(target.elts)
    return [] if target is None else [target]
