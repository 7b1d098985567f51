"""JSON files next to the settings, such as mcp.json and hooks.json, and the variables that their texts name."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from botservice.core.errors import SettingsError

_VARIABLE: Final = re.compile(r"\$\{([^}]{0,300})\}")
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def read_json(path: Path, setting: str) -> Any:
    """Return what a file holds.

    Args:
        setting: The setting that names the file.

    Raises:
        SettingsError: the file is not there or is no JSON; the message repeats nothing of it.
    """
    try:
        return json.loads(path.read_text("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not there" if isinstance(error, FileNotFoundError) else type(error).__name__
        raise SettingsError(f"{path} cannot be read: {reason}; {setting} names the file, or says none") from None
    except ValueError as error:
        where = f"line {error.lineno}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else "numbers"
        raise SettingsError(f"{path} is no JSON: see {where}") from None
    except RecursionError:
        raise SettingsError(f"{path} is no JSON that anybody wrote: it is nested too deep") from None


def expand_variables(text: str, environment: Mapping[str, str]) -> tuple[str, dict[str, str], set[str]]:
    """Put the values of the environment in the place of ${NAME} and ${NAME:-default}.

    Returns:
        The text, the values that the environment has, by name, and the defaults of those that it has not.

    Raises:
        ValueError: a variable is not in the environment and has no default, or is written otherwise; the message says
            which, and repeats nothing else of the text.
    """
    known: dict[str, str] = {}
    defaults: set[str] = set()

    def read(found: re.Match[str]) -> str:
        name, has_default, default = found[1].partition(":-")
        if not _NAME.fullmatch(name):
            raise ValueError("a variable is written ${NAME}, with letters, digits and _")
        if name in environment:
            return known.setdefault(name, environment[name])
        if not has_default:
            raise ValueError(f"the environment has no {name}: set it, here or in .env")
        defaults.add(default)
        return default

    return _VARIABLE.sub(read, text), known, defaults
