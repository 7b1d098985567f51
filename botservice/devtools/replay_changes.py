"""What is different when a question is asked again."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botservice.core.errors import BotServiceError
from botservice.llm.chat import ChatMessage

SECTIONS: Final = ("notes", "window", "earlier", "person", "waiting", "documents", "found")
"""The parts of a prompt that can be left out: what is remembered, and what was said before."""
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})


@dataclass(frozen=True, slots=True)
class Changes:
    """What is different from the prompt in the record; nothing, by default.

    Attributes:
        prompt: In the place of the agent's own words at the top; skills and the persona stay behind them.
        without: Parts that are left out: notes, window, earlier, person, waiting, found.
        messages: In the place of the whole prompt, as chat-completions messages.
    """

    prompt: str | None = None
    without: Collection[str] = ()
    messages: Sequence[ChatMessage] | None = None

    def __post_init__(self) -> None:
        """Check that the changes fit together."""
        unknown = [each for each in self.without if each not in SECTIONS]
        if unknown:
            raise BotServiceError(f"a prompt has no part {unknown[0]!r} to leave out; there are: {', '.join(SECTIONS)}")
        if self.messages is not None and (self.prompt is not None or self.without):
            raise BotServiceError("messages are the whole prompt: change them, and give no prompt and no without")

    def apply(
        self, messages: Sequence[ChatMessage], sections: Mapping[str, Sequence[int]], own: Collection[str]
    ) -> list[ChatMessage]:
        """Return a prompt with the changes.

        Args:
            sections: The place of each part's first message, and the one after its last.
            own: Words that may stand at the top as the agent's own.
        """
        if self.messages is not None:
            return list(self.messages)
        gone = {place for name in self.without for place in range(*sections.get(name, (0, 0)))}
        kept = [dict(message) for place, message in enumerate(messages) if place not in gone]
        if self.prompt is None:
            return [*kept]
        if not kept or kept[0].get("role") != "system":
            return [{"role": "system", "content": self.prompt}, *kept]
        text = str(kept[0].get("content") or "")
        kept[0]["content"] = self.prompt + text[len(own_words(text, own)) :]
        return [*kept]

    def describe(self) -> list[str]:
        """Return the changes in words."""
        said = ["another prompt"] if self.prompt is not None else []
        said += ["other messages"] if self.messages is not None else []
        return said + [f"without {each}" for each in SECTIONS if each in self.without]


def read_messages(text: str) -> list[ChatMessage]:
    """Return the messages of a JSON text: a list, or what `--json` printed.

    Raises:
        BotServiceError: it is something else; it says where, and what to do.
    """
    try:
        given: Any = json.loads(text)
    except ValueError as error:
        raise BotServiceError(f"the messages are no JSON: {error}. --show-prompt prints some to begin with") from None
    if isinstance(given, dict):
        given = given.get("prompt")
    if not isinstance(given, list) or not given:
        raise BotServiceError("the messages must be a JSON list, as --show-prompt prints it")
    for number, message in enumerate(given, 1):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise BotServiceError(f'message {number} must be an object with a "role": {", ".join(sorted(_ROLES))}')
        if not isinstance(message.get("content"), str | list) and not message.get("tool_calls"):
            raise BotServiceError(f'message {number} has no "content": give it a text')
    return given


def own_words(text: str, own: Collection[str]) -> str:
    """Return the agent's own prompt from a system message, or all of it if that part is not known."""
    return next((each for each in own if each and text.startswith(each)), text)
