"""One skill: a folder with a SKILL.md that says what it is about, and with files that it may name."""

import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self

from botservice.errors import InvalidSkill
from botservice.quoting import in_one_line

FILE: Final = "SKILL.md"
MOST_BYTES: Final = 100_000  # of one text; a tool's result holds no more
_MOST_FOLDERS: Final = 200  # that are looked into for files
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FENCE: Final = "---"
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)


@dataclass(frozen=True, slots=True)
class Skill:
    """A skill: its name, its description and its folder.

    Attributes:
        description: What it is about, and when it is of use, in one line.
        root: Its folder; nothing outside of that is read.
    """

    name: str
    description: str
    root: Path

    @classmethod
    def of(cls, root: Path) -> Self:
        """Return the skill that lies in a folder.

        Raises:
            InvalidSkill: there is none that can be used; the message says why.
        """
        head, _ = _split(read_inside(root, FILE))
        fields = _parse(head)
        name, description = (fields.get(field) for field in ("name", "description"))
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise InvalidSkill("its name must be 1 to 64 letters, digits, - or _")
        shown = in_one_line(description) if isinstance(description, str) else ""
        if not shown:
            raise InvalidSkill("its description is missing: a text that says what it is about, and when it is of use")
        return cls(name, shown, root)

    def read(self) -> str:
        """Return what the skill says, as it stands in its file now.

        Raises:
            InvalidSkill: it cannot be read any more.
        """
        return _split(read_inside(self.root, FILE))[1].strip()

    def files(self) -> Iterator[str]:
        """Yield the paths of its other files, in order; those that are hidden are not there."""
        for number, (folder, folders, names) in enumerate(os.walk(self.root)):
            folders[:] = sorted(each for each in folders if not each.startswith(".")) if number < _MOST_FOLDERS else []
            for name in sorted(names):
                path = PurePosixPath(Path(folder, name).relative_to(self.root).as_posix())
                if not name.startswith(".") and str(path) != FILE:
                    yield str(path)


def read_inside(root: Path, path: str) -> str:
    """Return the text of a file below root.

    Raises:
        InvalidSkill: it lies elsewhere, also where a link leads there; or it is no text of at most 100,000 bytes.
    """
    parts = PurePosixPath(path).parts
    try:
        target = Path(root, path).resolve(strict=True)
        is_inside = target.is_relative_to(root.resolve(strict=True))
    except (OSError, ValueError, RuntimeError):  # it is not there, is no path, or links lead in a circle
        is_inside = False
    if not parts or not is_inside or any(part.startswith((".", "/")) for part in parts):
        raise InvalidSkill(f"there is no file {in_one_line(path)[:200]!r}")
    try:
        content = _read(target)
    except OSError as error:
        raise InvalidSkill(f"{path} cannot be read: {type(error).__name__}") from error
    if len(content) > MOST_BYTES:
        raise InvalidSkill(f"{path} is longer than {MOST_BYTES:,} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise InvalidSkill(f"{path} is no text in UTF-8")
    return text


def _read(path: Path) -> bytes:
    """Return a file's bytes, at most one too many; of what is no file, such as a pipe, none."""
    with os.fdopen(os.open(path, _FLAGS), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError("it is no file")
        return file.read(MOST_BYTES + 1)


def _split(text: str) -> tuple[str, str]:
    """Return the front matter of a SKILL.md, and what follows it."""
    lines = text.splitlines(keepends=True)
    marks = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE]
    if len(marks) < 2 or marks[0] != 0:
        raise InvalidSkill(f"{FILE} must begin with its name and description between two lines of {_FENCE}")
    return "".join(lines[1 : marks[1]]), "".join(lines[marks[1] + 1 :])


def _parse(head: str) -> dict[Any, Any]:
    """Return the fields of a front matter. Only texts are read: no types, and no merging, which can take for ever."""
    import yaml

    try:
        fields = yaml.load(head, Loader=yaml.BaseLoader)  # noqa: S506 - it makes texts, lists and dicts, nothing else
    except yaml.MarkedYAMLError as error:
        line = "" if error.problem_mark is None else f"line {error.problem_mark.line + 2}: "
        raise InvalidSkill(f"{FILE}, {line}{error.problem}; a text with a colon goes between quotes") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InvalidSkill(f"the first lines of {FILE} are no YAML: {type(error).__name__}") from error
    if not isinstance(fields, dict):
        raise InvalidSkill(f"the first lines of {FILE} must be name: … and description: …")
    return fields
