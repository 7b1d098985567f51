"""The skills that an agent has: their list, for its prompt, and the tool that reads them."""

import itertools
import logging
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from botservice.errors import InvalidSkill
from botservice.llm.tokens import EstimateCounter
from botservice.quoting import in_one_line, quote_text
from botservice.tools.skills.skill import Skill, read_inside
from botservice.tools.tool import Tool

logger = logging.getLogger(__name__)

DEFAULT_TOKENS: Final = 2000
_MOST_FILES: Final = 50
_LONGEST: Final = 1024  # characters of a description; the format allows no more
_HEADING: Final = (
    "Skills are texts that say how certain work is done here. Before you do such work, read the skill with load_skill "
    "and go by what it says, as far as it agrees with what is said above. The skills, with what each is about:"
)


class Skills:
    """Skills in the SKILL.md format: folders with a text each, which a model reads when it needs them.

    What lies beside a text is given out as text, too, and nothing of it is ever run.

    Attributes:
        problems: Why others could not be taken in, by their folders' names.
        prompt: The names, with what each is about, as they stand in the agent's prompt: always the same.
        tools: What reads them: `load_skill`.
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
        """Return the skills of a folder: each in a folder of its own, with a SKILL.md in it.

        Args:
            max_tokens: How many tokens the list in the prompt may take; descriptions are shortened to that.

        Raises:
            InvalidSkill: there is no such folder. What is wrong with one skill costs that one only; see `problems`.
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
                _take(found, _inside(place, root))
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


def _inside(place: Path, root: Path) -> Skill:
    if not place.resolve().is_relative_to(root.resolve()):
        raise InvalidSkill("it is a link to a place outside of the folder of skills")
    return Skill.of(place.resolve())


def _take(found: dict[str, Skill], skill: Skill) -> None:
    known = found.setdefault(skill.name, skill)
    if known is not skill:
        raise InvalidSkill(f"the name {skill.name} is that of the skill in {known.root.name} already")


def _describe(skills: Sequence[Skill], max_tokens: int) -> str:
    """Return the list of skills within max_tokens: where it would be longer, each description is cut to one length."""
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
