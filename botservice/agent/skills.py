"""The skills that an agent has: their list, for its prompt, and the tool that reads them."""

import itertools
import logging
import os
import re
import stat
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final, Self

from botservice.agent.tool import Tool
from botservice.core.errors import InvalidSkill
from botservice.core.quoting import in_one_line, quote_text
from botservice.llm.tokens import EstimateCounter

logger = logging.getLogger(__name__)

FILE: Final = "SKILL.md"
MOST_BYTES: Final = 100_000  # of one text; a tool's result holds no more
_MOST_FOLDERS: Final = 200  # that are looked into for files
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_FENCE: Final = "---"
_FLAGS: Final = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOFOLLOW", 0)

DEFAULT_TOKENS: Final = 2000
_MOST_FILES: Final = 50
_LONGEST: Final = 1024  # characters of a description; the format allows no more
_HEADING: Final = (
    "Skills are texts that say how certain work is done here. Before you do such work, read the skill with load_skill "
    "and go by what it says, as far as it agrees with what is said above. The skills, with what each is about:"
)


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
        """Return what the skill says, as it stands in its file now."""
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


class Skills:
    """Skills in the SKILL.md format: folders with instructions that a model reads when it needs them.

    Other files of a folder are also returned as text, and never executed.

    Attributes:
        problems: Why skills could not be loaded, by the names of their folders.
        prompt: The list of names and descriptions for the agent's prompt; it never changes.
        tools: The tool that reads them, `load_skill`.
    """

    def __init__(
        self,
        skills: Sequence[Skill] = (),
        *,
        problems: Mapping[str, str] | None = None,
        max_tokens: int = DEFAULT_TOKENS,
    ) -> None:
        self._skills = {skill.name: skill for skill in sorted(skills, key=lambda skill: skill.name)}
        self.problems = dict(problems or {})
        self.prompt = _describe([*self._skills.values()], max_tokens)
        self.tools: Sequence[Tool] = (
            [Tool(self._load_skill, name="load_skill", idempotent=True)] if self._skills else []
        )

    @classmethod
    def load(cls, folder: str | Path, *, max_tokens: int = DEFAULT_TOKENS) -> Self:
        """Load the skills of a folder: one sub-folder with a SKILL.md for each.

        Args:
            max_tokens: The most tokens of the list in the prompt; longer descriptions are shortened.

        Raises:
            InvalidSkill: there is no such folder. A single invalid skill is skipped; see `problems`.
        """
        root = Path(folder)
        try:
            places = sorted(each for each in root.iterdir() if each.is_dir() and not each.name.startswith("."))
        except OSError as error:
            raise InvalidSkill(f"{folder} cannot be read as a folder of skills: {type(error).__name__}") from error
        found: dict[str, Skill] = {}
        problems = {}
        for place in places:
            try:
                _take(found, place, root)
            except InvalidSkill as error:
                problems[place.name] = str(error)
                logger.warning("skills.left_out", extra={"folder": str(place), "reason": str(error)})
        return cls([*found.values()], problems=problems, max_tokens=max_tokens)

    @property
    def names(self) -> Sequence[str]:
        """The names, in the order of the list."""
        return [*self._skills]

    def _load_skill(self, name: str, file: str = "") -> str:
        """Read a skill, or a file that belongs to one.

        Args:
            name: The name of the skill, as the list of skills has it.
            file: A file of the skill, such as references/style.md. Without it, the skill's own text is read.
        """
        skill = self._skills.get(name.strip())
        if skill is None:
            return f"There is no skill {in_one_line(name)[:100]!r}; there are: {', '.join(self._skills)}."
        try:
            if file.strip():
                return read_inside(skill.root, file.strip())
            text = skill.read()
            files = [in_one_line(each) for each in itertools.islice(skill.files(), _MOST_FILES)]
        except InvalidSkill as error:
            return f"The skill {skill.name} cannot be read: {error}."
        return f"{text}\n\nFiles of this skill: {', '.join(files)}" if files else text


def _take(found: dict[str, Skill], place: Path, root: Path) -> None:
    if not place.resolve().is_relative_to(root.resolve()):
        raise InvalidSkill("it is a link to a place outside of the folder of skills")
    skill = Skill.of(place.resolve())
    known = found.setdefault(skill.name, skill)
    if known is not skill:
        raise InvalidSkill(f"the name {skill.name} is that of the skill in {known.root.name} already")


def _describe(skills: Sequence[Skill], max_tokens: int) -> str:
    """Return the list of skills within max_tokens: where it would be longer, each description is cut to one length."""
    if not skills:
        return ""
    count = EstimateCounter().count  # the same for every model and on every machine, and rather too much
    named = bisect_right(range(1, len(skills) + 1), max_tokens, key=lambda few: count(_list(skills[:few], 0)))
    if named < len(skills):
        left_out = ", ".join(each.name for each in skills[named:])
        logger.warning("skills.not_listed", extra={"max_tokens": max_tokens, "skills": left_out})
    listed = skills[:named]
    length = bisect_right(range(1, _LONGEST + 1), max_tokens, key=lambda length: count(_list(listed, length)))
    return _list(listed, length) if listed else ""


def _list(skills: Sequence[Skill], length: int) -> str:
    return "\n".join([_HEADING, *(f"- {each.name}{_about(each.description, length)}" for each in skills)])


def _about(description: str, length: int) -> str:
    if not length:
        return ""
    shown = description if len(description) <= length else f"{description[:length].rstrip()}…"
    return f": {quote_text(shown)}"
