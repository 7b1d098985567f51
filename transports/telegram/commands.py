"""The menu of commands that Telegram shows."""

from collections.abc import Iterable
from typing import Any

from botservice.commands import Command
from botservice.texts import DEFAULT_LANGUAGE, LANGUAGES


def menus(commands: Iterable[Command]) -> list[tuple[str | None, list[dict[str, Any]]]]:
    """Return the menu for every language, and first the one for all others."""
    known = [command for command in commands if command.is_listed]
    languages = [None, *(code for code in LANGUAGES if code != DEFAULT_LANGUAGE)]
    return [(language, [_entry(each, language) for each in known]) for language in languages]


def _entry(command: Command, language: str | None) -> dict[str, Any]:
    return {"command": command.name, "description": command.description(language)}
