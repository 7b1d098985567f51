"""Which bot a command serves: the one that is named, the one of bot.py in the current folder, or the built-in agent."""

import ast
import importlib
import logging
import re
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from botservice.core.errors import SettingsError

if TYPE_CHECKING:
    from botservice.config.settings import Settings
    from botservice.service import AgentService

logger = logging.getLogger(__name__)

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


def load_service(name: str, *, source: str | None = None) -> "AgentService":
    """Return the service that `module:attribute` names; the current folder is importable.

    Args:
        source: What names it, for errors; by default the option --app.

    Raises:
        SettingsError: there is no such module or service, or the module fails.
    """
    from botservice.service import AgentService

    source = source or f"--app {name}"
    module_name, _, attribute = name.partition(":")
    if not module_name or not attribute:
        kind = source.partition(" ")[0].partition("=")[0]
        raise SettingsError(f"{kind} must be module:service, such as mybot:service, not {name!r}")
    folder = str(Path.cwd())
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise SettingsError(f"{source}: {module_name} needs {error.name}, which is not installed") from error
        raise SettingsError(f"{source}: there is no module {module_name} in {folder}") from error
    except SettingsError:
        raise
    except (Exception, SystemExit) as error:
        logger.debug("app.not_imported", exc_info=True)
        raise SettingsError(f"{source}: {module_name} cannot be imported: {_where(error, folder)}") from error
    if not hasattr(module, attribute):
        known = [each for each, value in vars(module).items() if isinstance(value, AgentService)]
        near = f"; it has: {', '.join(known)}" if known else "; it has no AgentService"
        raise SettingsError(f"{source}: there is no {attribute} in {module_name}{near}")
    service = getattr(module, attribute)
    if not isinstance(service, AgentService):
        found = type(service).__name__
        raise SettingsError(f"{source}: {attribute} in {module_name} must be an AgentService, not {found}")
    return service


def _where(error: BaseException, folder: str) -> str:
    """Return an error with the line of the user's own file in which it came up, the last one below folder."""
    what = error.args[0] if isinstance(error, SyntaxError) else str(error)
    said = " ".join(f"{type(error).__name__}: {what}".split())
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{said} ({_shown(error.filename, folder)}:{error.lineno})"
    frames = traceback.extract_tb(error.__traceback__)
    own = [each for each in frames if _is_own(Path(each.filename), folder)]
    frame = (own or frames)[-1]
    return f"{said} ({_shown(frame.filename, folder)}:{frame.lineno})"


def _is_own(path: Path, folder: str) -> bool:
    return path.is_relative_to(folder) and not {"site-packages", "botservice"} & {*path.relative_to(folder).parts}


def _shown(filename: str, folder: str) -> str:
    path = Path(filename)
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else filename
