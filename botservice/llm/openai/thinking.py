"""What a model thinks before it answers, told apart from the answer where its server does not do so."""

import re
from typing import Final

# DeepSeek R1 and models that were made of it; Qwen; MiniMax; Hunyuan; Seed; Magistral as GGUF.
_OPENING: Final = re.compile(r"\s*<(think|thinking|thought|reasoning|seed:think)>|\s*(\[THINK\])", re.IGNORECASE)
_OPENINGS: Final = ("<think>", "<thinking>", "<thought>", "<reasoning>", "<seed:think>", "[think]")
# Their template begins the thinking itself, so that the answer holds its end alone: DeepSeek R1, QwQ and the Thinking
# models of Qwen3, by servers that read no reasoning out of them. Source: their model cards and chat templates.
_ENDS_ALONE: Final = re.compile(
    r"deepseek-?r1|r1-distill|\bqwq\b|qwen3(?:\.\d+)?[-\w]*thinking|nemotron[-\w]*(?:reasoning|thinking)|\bhunyuan-t1",
    re.IGNORECASE,
)
_LONE_END: Final = "</think>"


def ends_alone(model: str) -> bool:
    """Return whether a model is known to end its thinking without having begun it."""
    return bool(_ENDS_ALONE.search(model))


class ThinkingFilter:
    """Takes the thinking out of a text that arrives in pieces: a block that stands at its beginning, and no other.

    Args:
        ends_alone: The text may begin inside of the block.
    """

    def __init__(self, *, ends_alone: bool = False) -> None:
        self._thinking: list[str] = []
        self._held = ""
        self._end = _LONE_END if ends_alone else ""
        self._is_lone = ends_alone
        self._is_over = False
        self._is_trimming = False

    @property
    def thinking(self) -> str:
        """What was taken out."""
        return "" if self._is_lone else "".join(self._thinking)

    def feed(self, piece: str) -> str:
        """Return what of the next piece, and of what was held back, belongs to the answer."""
        if self._is_over:
            return self._trim(piece) if self._is_trimming else piece
        self._held += piece
        if not self._thinking and (not self._end or self._is_lone):
            if opened := _OPENING.match(self._held):
                self._held, self._is_lone = self._held[opened.end() :], False
                self._end = f"</{opened[1].lower()}>" if opened[1] else "[/think]"
            elif self._may_open():
                return ""
        return self._take_thinking() if self._end else self._give_up()

    def finish(self) -> str:
        """Return what was held back, at the end of the text: a block without an end is thinking, and no answer."""
        if self._is_over or (self._end and not self._is_lone):
            self._thinking.append(self._held)
            self._held = ""
            return ""
        return self._give_up()

    def see_reasoning(self) -> str:
        """Take note that the server tells the thinking apart itself; return what belongs to the answer by that."""
        return self._give_up() if self._is_lone and not self._is_over else ""

    def _may_open(self) -> bool:
        begun = self._held.lstrip().lower()
        return any(opening.startswith(begun) for opening in _OPENINGS)

    def _take_thinking(self) -> str:
        place = self._held.lower().find(self._end)
        if place < 0:  # all but what may be the beginning of its end
            sure = max(0, len(self._held) - len(self._end) + 1)
            self._thinking.append(self._held[:sure])
            self._held = self._held[sure:]
            return ""
        rest = self._held[place + len(self._end) :]
        self._thinking.append(self._held[:place])
        self._is_over, self._is_lone, self._held = True, False, ""
        return self._trim(rest)

    def _give_up(self) -> str:
        """Return all that was held back: there is no thinking in it."""
        text = "".join([*self._thinking, self._held])
        self._thinking, self._held, self._is_over, self._is_lone = [], "", True, False
        return text

    def _trim(self, piece: str) -> str:
        """Return a piece without the blank lines between the thinking and the answer."""
        trimmed = piece.lstrip()
        self._is_trimming = not trimmed
        return trimmed
