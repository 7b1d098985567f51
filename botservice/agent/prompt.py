"""A prompt: chat-completions messages that know their sections, their sources and their size in tokens."""

import hashlib
import itertools
import json
import operator
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from botservice.conversation.prompt_exclusions import NOTHING_KEPT_OUT, KeptOut
from botservice.history.message_rendering import Source
from botservice.llm.chat import CachedPrompt, ChatMessage, SaidMessage, ToolSchema
from botservice.llm.tokens import TokenCounter, counter_for

TOKENS_AROUND_A_MESSAGE: Final = 4
_MARGIN_PERCENT: Final = 110  # servers put words of their own around messages and tools, and encodings differ a little
IMAGE_TOKENS_TEXT: Final = "i " * 800  # an image counts like so many words, whatever the bytes are
_NOT_KEPT: Final = "[what the person had open: not kept]"


class Prompt(CachedPrompt):
    """The chat-completions messages of a prompt, and their sources.

    A subclass that overrides `build_prompt` may change the list: the sources follow its messages.

    Attributes:
        model: The name of the model that it is built for, if known.
        conversation: The id and the keys of its context, if there is one.
        kept_out: The parts of the conversation that are left out because the model refuses them.
        holds_others: Whether its search results may contain words of people other than the assistant and the asker.
        facts: How it was built, as JSON values without anybody's words, for the inspector.
    """

    model: str | None = None
    conversation: tuple[int, Mapping[str, str]] | None = None
    kept_out: KeptOut = NOTHING_KEPT_OUT

    def __init__(self, messages: Iterable[ChatMessage] = ()) -> None:
        super().__init__(messages)
        self.facts: dict[str, Any] = {}
        self.holds_others = False
        self._built: list[ChatMessage] = list(self)
        self._sections: list[tuple[str, int]] = []
        self._sources: dict[int, Source] = {}
        self._passing: list[ChatMessage] = []

    def add_section(
        self,
        name: str,
        messages: Iterable[ChatMessage],
        *,
        sources: Iterable[Source] = (),
        is_copied: bool = False,
        is_kept: bool = True,
    ) -> None:
        """Append messages as a section.

        Args:
            name: system, notes, window, earlier (steps of prompts before this one), person, waiting, looking_at,
                documents, found, question or steps.
            sources: The messages of the history that they show.
            is_copied: Append copies: the next prompt uses the same objects again, and changes to this prompt must not
                reach them.
            is_kept: Whether the record of the prompt may contain them.
        """
        first = len(self)
        given = list(messages)
        if not given:
            return
        self.extend(map(_copied, given) if is_copied else given)
        self._built.extend(self[first:])
        self._sections.append((name, first))
        self._sources.update(enumerate(sources, first))
        if not is_kept:
            self._passing.extend(self[first:])

    @cached_property
    def cache_key(self) -> str | None:
        """A key that all prompts of one conversation share and that reveals nothing; None without a conversation.

        Servers search their prompt cache among prompts with the same key.
        """
        return None if self.conversation is None else _cache_key(*self.conversation)

    def kept(self) -> list[ChatMessage]:
        """Build the version that may be recorded: parts that end with the turn are named and left out."""
        if not self._passing:
            return self
        passing = {id(message) for message in self._passing}
        return [{**each, "content": _NOT_KEPT} if id(each) in passing else each for each in self]

    def sections(self) -> dict[str, tuple[int, int]]:
        """Map each section to the index of its first message and the index after its last."""
        ranges = itertools.pairwise([*self._sections, ("", len(self._built))])
        built = {name: (first, end) for (name, first), (_, end) in ranges}
        places = self._places()
        if places is None:
            return built
        moved = {
            name: [place for place in places[first:end] if place is not None] for name, (first, end) in built.items()
        }
        return {name: (min(now), max(now) + 1) for name, now in moved.items() if now}

    @property
    def breakpoints(self) -> list[int]:
        """The indexes of the messages after which a server should cache the prompt: at most three, in order.

        They are the end of the instructions, the last message of a person in the window, and where it is found again:
        the one that was the last in the prompt before this. That is the question, once there are steps.
        """
        sections = self.sections()
        instructions = sections.get("notes") or sections.get("system")
        window = range(*sections.get("window", (0, 0)))
        before, last = _last_of_people([str(self[place]["role"]) for place in window])
        found = [None if place is None else window[place] for place in (before, last)]
        question = sections.get("question")
        if question is not None and len(self) > question[1]:
            found = [found[1], question[1] - 1]
        return [place for place in (instructions and instructions[1] - 1, *found) if place is not None]

    def shows_step_pictures(self) -> bool:
        """Check whether it contains pictures from tools."""
        ranges = [range(*place) for name, place in self.sections().items() if name in ("earlier", "steps")]
        contents = (self[place].get("content") for places in ranges for place in places)
        parts = (part for content in contents if isinstance(content, list) for part in content)
        return any(part.get("type") == "image_url" for part in parts)

    def sources(self) -> dict[int, Source]:
        """Map indexes of messages to the parts of the history that they show."""
        places = self._places()
        if places is None:
            return self._sources
        return {new: source for old, source in self._sources.items() if (new := places[old]) is not None}

    def _places(self) -> list[int | None] | None:
        """Return where each message that it was built of stands now; None if nothing has moved."""
        if len(self) == len(self._built) and all(map(operator.is_, self, self._built)):
            return None
        by_identity = {id(message): place for place, message in enumerate(self)}
        return [by_identity.get(id(message)) for message in self._built]


def estimate_tokens(messages: Iterable[ChatMessage]) -> int:
    """Return roughly how many tokens messages take."""
    return sum(len(json.dumps(_without_images(message), ensure_ascii=False)) for message in messages) // 3


def count_tokens(messages: Sequence[ChatMessage], tools: Sequence[ToolSchema], model: str | None) -> int:
    """Return how many tokens a prompt takes, rather too many than too few; images at a flat rate. It may block."""
    counter = counter_for(model)
    offered = counter.count(json.dumps(list(tools), ensure_ascii=False)) if tools else 0
    counted = size_of(messages, counter) + len(messages) * TOKENS_AROUND_A_MESSAGE + offered
    return -(-counted * _MARGIN_PERCENT // 100)


def _cache_key(context_id: int, context_keys: Mapping[str, str]) -> str:
    """Return what prompts of a context have in common, without telling whose they are."""
    known = json.dumps([context_id, *sorted(context_keys.items())])
    return hashlib.blake2b(known.encode(), digest_size=16, person=b"prompt caches").hexdigest()


def size_of(messages: Sequence[ChatMessage], counter: TokenCounter) -> int:
    """Count the tokens of messages by a counter, without those that a server puts around each."""
    return sum(counter.count(json.dumps(_without_images(message), ensure_ascii=False)) for message in messages)


def _without_images(message: ChatMessage) -> ChatMessage:
    if not isinstance(message.get("content"), list | tuple):
        return message
    parts = [IMAGE_TOKENS_TEXT if part.get("type") == "image_url" else part for part in message["content"]]
    return {**message, "content": parts}


def _copied(message: ChatMessage) -> ChatMessage:
    return message.copy() if isinstance(message, SaidMessage) else dict(message)


def _last_of_people(roles: Sequence[str]) -> tuple[int | None, int | None]:
    """Return the place of a person's last message at the turn before and now, in a window of these roles.

    The turn before ended with the assistant's last message, which answered the person's last one before that; its
    window ended before that one.
    """
    people = [place for place, role in enumerate(roles) if role == "user"]
    answers = [place for place, role in enumerate(roles) if role == "assistant"]
    asked = [place for place in people if answers and place < answers[-1]]
    return asked[-2] if len(asked) > 1 else None, people[-1] if people else None
