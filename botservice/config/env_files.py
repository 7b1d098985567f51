"""Files of settings: what stands in one that cannot be read is said, and so is a name that is almost a setting's."""

import io
import os
import re
from collections.abc import Container, Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from dotenv import dotenv_values
from dotenv.parser import Binding, parse_stream

from botservice.core.check_result import Finding
from botservice.core.errors import SettingsError

_LIKENESS: Final = 0.85
_NAME: Final = re.compile(r"[\w .-]+")
_LINE: Final = re.compile(r"\s*+(?:export\s++)?[\"']?(?P<name>\w++)\s*+(?P<equals>=?)")


def environment_with_file(file: Path = Path(".env")) -> dict[str, str]:
    """Collect the variables of the environment, and those of a file that it has not."""
    kept = {name: value for name, value in dotenv_values(file).items() if value is not None}
    return {**kept, **os.environ}


def check_lines(file: Path, settings: Container[str]) -> None:
    """Return if every line of a file can be read, or if there is no file.

    Args:
        settings: The names of settings, in small letters.

    Raises:
        SettingsError: some cannot; each is named by its number, and by its setting. Or it is no UTF-8.
    """
    if not file.is_file():  # it need not be there, and a pipe gives its text only once
        return
    data = file.read_bytes()
    try:
        text = io.StringIO(data.decode("utf-8"), newline=None)
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise SettingsError(f"{file}, line {number}: cannot be read; save the file as UTF-8") from None
    wrong = [
        f"{file}, {_describe(each.original.string, each.original.line, settings)}"
        for each in parse_stream(text)
        if _is_unreadable(each, settings)
    ]
    if wrong:
        raise SettingsError("\n".join(wrong))


def _is_unreadable(line: Binding, settings: Container[str]) -> bool:
    if line.error or line.key is None:
        return line.error
    if line.value is None:
        return line.key not in os.environ  # whose value counts, as docker has it; one of the file would be dropped
    # Names of other programs may be written in any way.
    return not _NAME.fullmatch(line.key) and _name_in(line.original.string).lower() in settings


def _name_in(text: str) -> str:
    """Return the name that a line begins with; nothing where it begins with none."""
    found = _LINE.match(text)
    return found["name"] if found else ""


def _describe(text: str, number: int, settings: Container[str]) -> str:
    """Return what is wrong with a line, without anything of it but a setting's name: the rest may be a secret."""
    number += text[: len(text) - len(text.lstrip())].count("\n")  # blank lines above belong to it
    found, name = _LINE.match(text), _name_in(text)
    shown = f" ({name.upper()})" if name.lower() in settings else ""
    remedy = "a quote is not closed, or text stands behind it" if found and found["equals"] else "write NAME=value"
    return f"line {number}{shown}: cannot be read; {remedy}"


def check_spelling(settings: Iterable[str], file: Path = Path(".env")) -> list[Finding]:
    """Return a finding for each name in a file that is no setting and looks like one: it does nothing.

    The names of what a bot reads by itself stand there as well, so none of these findings is an error.

    Args:
        settings: The names of settings, in small letters.
    """
    known = [name.upper() for name in settings]
    findings = []
    for name in dotenv_values(file):
        close = [] if name.upper() in known else get_close_matches(name.upper(), known, n=1, cutoff=_LIKENESS)
        findings += [Finding("setting", f"{name} in {file} is none; {each} is", is_off=True) for each in close]
    return findings
