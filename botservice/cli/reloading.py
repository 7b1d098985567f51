"""Restarting `serve --reload` whenever a file of the bot changes."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from watchfiles import Change

_NAMES: Final = (".env", "mcp.json", "hooks.json", "SKILL.md")
_ENDING_SECONDS: Final = 10  # for the answers that are under way: see GRACE_SECONDS
_OPTION: Final = "--reload"


def serve_again() -> None:
    """Run the same command without --reload, and anew each time a file of the bot changes; until Ctrl+C."""
    from watchfiles import run_process

    command = [sys.executable, "-m", "botservice", *(each for each in sys.argv[1:] if each != _OPTION)]
    run_process(
        Path.cwd(),
        target=shlex.join(command),
        target_type="command",
        watch_filter=_is_of_the_bot,
        sigint_timeout=_ENDING_SECONDS,
    )


def _is_of_the_bot(_: "Change", path: str) -> bool:
    file = Path(path)
    is_installed = any(part in {".venv", "venv", "site-packages", "__pycache__", "node_modules"} for part in file.parts)
    return not is_installed and (file.suffix == ".py" or file.name in _NAMES)
