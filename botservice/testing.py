"""Tests of bots: a chat in a text file that is at once the model's script and what has to come of it."""

import asyncio
import difflib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Final

from botservice.conversation.context import AgentContext
from botservice.conversation.steps import ActionStep, MemoryStep
from botservice.core.errors import ApprovalPending, BotServiceError, LLMError, ResultPending
from botservice.core.messages import Message, ToolCall
from botservice.llm.chat import ChatLLM, ChatMessage
from botservice.llm.scripted import Reply, ScriptedChatLLM
from botservice.service import AgentService
from botservice.storage.database import Storage
from botservice.turns.agent_run import AgentRun
from botservice.turns.waiting_calls import PendingCall

MakeService = Callable[[ChatLLM], AgentService]
"""Makes the bot around a model, as `make_service` of a new bot does."""

_YOU, _BOT, _CALL, _ASKS, _RESULT, _ERROR = "you", "bot", "call", "asks", "result", "error"
_KINDS: Final = (_YOU, _BOT, _CALL, _ASKS, _RESULT, _ERROR, "refused", "later", "button", "file")
_LINE: Final = re.compile(rf"({'|'.join(_KINDS)}):\s?(.*)")
_DECISION: Final = re.compile(r"/(allow|deny)( all)?")
_ANYTHING: Final = "…"


@dataclass(frozen=True, slots=True)
class TranscriptLine:
    """What one line of a transcript says, with the lines that go on with it.

    Attributes:
        kind: What stands before the colon.
    """

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: " + self.text.replace("\n", "\n  ")

    def matches(self, other: "TranscriptLine") -> bool:
        """Return whether another line says the same; … stands for whatever it likes."""
        first, *middle = self.text.split(_ANYTHING)
        if self.kind != other.kind or not middle:
            return self.kind == other.kind and self.text == other.text
        *middle, last = middle
        if not other.text.startswith(first):
            return False
        at = len(first)
        for part in middle:
            found = other.text.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return other.text.endswith(last) and at + len(last) <= len(other.text)


def assert_transcript(path: str | Path, make_service: MakeService) -> None:
    """Play a chat that a file holds, and return if everything came as the file says. See docs/guides/testing.md.

    Raises:
        AssertionError: something else came; it says what, line by line.
        BotServiceError: the file is no transcript.
    """
    text = Path(path).read_text(encoding="utf-8")
    difference = compare(text, asyncio.run(play(text, make_service)))
    if difference:
        raise AssertionError(f"{path} went another way (- is the file, + is what came):\n{difference}")


def compare(expected: str, played: str) -> str:
    """Return how two transcripts differ, line by line, or nothing if they do not."""
    left, right = read_transcript(expected), read_transcript(played)
    same = [want if want.matches(got) else got for want, got in zip(left, right, strict=False)]
    came = [*same, *right[len(same) :]]
    return "\n".join(difflib.unified_diff([*map(str, left)], [*map(str, came)], lineterm="", n=3))


async def play(text: str, make_service: MakeService) -> str:
    """Return what comes of a chat: the transcript as it goes, with the model saying what the text has it say."""
    lines = read_transcript(text)
    script = _Script()
    async with Storage.open("sqlite://") as storage, make_service(ScriptedChatLLM(script.reply)) as service:
        context = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "1"})
        chat = _Chat(service, context, script)
        for said, following in _sections(lines):
            script.replies = [*_replies(following)]
            await chat.hear(said)
    return "".join(f"{line}\n" for line in chat.came)


def read_transcript(text: str) -> list[TranscriptLine]:
    """Return the lines of a transcript: `#` begins a comment, and what is indented goes on with the line before.

    Raises:
        BotServiceError: a line says nothing that could be.
    """
    lines: list[TranscriptLine] = []
    for number, raw in enumerate(text.splitlines(), 1):
        found = _LINE.fullmatch(raw.rstrip())
        if found is not None:
            lines.append(_canonical(TranscriptLine(found[1], found[2]), number))
        elif lines and raw.startswith("  "):
            lines[-1] = TranscriptLine(lines[-1].kind, f"{lines[-1].text}\n{raw[2:].rstrip()}")
        elif raw.strip() and not raw.startswith("#"):
            raise BotServiceError(f"line {number} of the transcript begins with none of {': '.join(_KINDS)}: {raw!r}")
    return lines


def _canonical(line: TranscriptLine, number: int) -> TranscriptLine:
    if line.kind not in (_CALL, _ASKS):
        return line
    name, _, arguments = line.text.partition(" ")
    try:
        return TranscriptLine(line.kind, _call(name, json.loads(arguments or "{}")))
    except ValueError as error:
        raise BotServiceError(
            f"line {number} of the transcript: what stands behind {name} is no JSON, {error}"
        ) from error


def _call(name: str, arguments: object) -> str:
    return f"{name} {json.dumps(arguments, ensure_ascii=False, default=dict)}"


def _sections(lines: Sequence[TranscriptLine]) -> Iterator[tuple[str, list[TranscriptLine]]]:
    """Yield what a person says, and what stands between that and what they say next."""
    if lines and lines[0].kind != _YOU:
        raise BotServiceError("a transcript begins with what a person says: you: …")
    for place, line in enumerate(lines):
        if line.kind == _YOU:
            yield line.text, [*takewhile(lambda each: each.kind != _YOU, lines[place + 1 :])]


def _replies(lines: Sequence[TranscriptLine]) -> Iterator[Reply]:
    """Yield what the model says, answer for answer: a text, or calls that stand together with the text before them."""
    said: list[str | ToolCall] = []
    for line in [*lines, TranscriptLine(_RESULT, "")]:
        if line.kind == _CALL:
            name, _, arguments = line.text.partition(" ")
            said.append(ToolCall("", name, json.loads(arguments)))
            continue
        if said:
            yield said
        said = [line.text] if line.kind == _BOT else []


@dataclass(slots=True)
class _Script:
    """What the model says until a person speaks again, and what it has said of that."""

    replies: list[Reply] = field(default_factory=list)
    said: list[TranscriptLine] = field(default_factory=list)

    def reply(self, _: list[ChatMessage]) -> Reply:
        """Return the next one.

        Raises:
            LLMError: the file has none.
        """
        if not self.replies:
            raise LLMError("the model is asked once more than the file has an answer for", is_transient=False)
        reply = self.replies.pop(0)
        parts = reply if isinstance(reply, list) else [reply]
        if any(isinstance(part, ToolCall) for part in parts):
            self.said += [_spoken(part) for part in parts]
        return reply


def _spoken(part: object) -> TranscriptLine:
    return (
        TranscriptLine(_CALL, _call(part.name, part.arguments))
        if isinstance(part, ToolCall)
        else TranscriptLine(_BOT, str(part))
    )


class _Chat:
    """One conversation that is played."""

    def __init__(self, service: AgentService, context: AgentContext, script: _Script) -> None:
        self._service, self._context, self._script = service, context, script
        self._waiting: list[PendingCall] = []
        self.came: list[TranscriptLine] = []

    async def hear(self, text: str) -> None:
        """Have the bot do what it does where a person says something."""
        self.came.append(TranscriptLine(_YOU, text))
        decision = _DECISION.fullmatch(text)
        if decision is None or not self._waiting:
            await self._go_on(lambda: self._service.start(self._context, text, author="you"))
            return
        for call in self._waiting[:] if decision[2] else self._waiting[-1:]:
            await self._service.decide(self._context, call.number, allow=decision[1] == "allow")
            self._waiting.remove(call)
        if not self._waiting:
            await self._go_on(lambda: self._service.resume(self._context))

    async def _go_on(self, begin: Callable[[], object]) -> None:
        try:
            run = await begin()  # type: ignore[misc]  # either of two that give a run
            while run is not None and run.answer is None:
                self._tell(await run.step(), run)
        except ApprovalPending as pending:
            self._waiting = [*pending.calls]
            self._take(TranscriptLine(_ASKS, _call(call.name, call.arguments)) for call in pending.calls)
        except ResultPending as pending:
            self._take(TranscriptLine("later", call.id) for call in pending.calls)
        except LLMError as error:
            self._take([TranscriptLine(_ERROR, str(error))])

    def _tell(self, step: MemoryStep, run: AgentRun) -> None:
        if run.answer is not None:
            self._take(_answered(run.answer))
        elif isinstance(step, ActionStep) and step.tool_results:
            self._take(TranscriptLine(_ERROR if each.is_error else _RESULT, each.text) for each in step.tool_results)
        elif isinstance(step, ActionStep):
            self._take(
                [TranscriptLine(_BOT, step.model_output or ""), TranscriptLine("refused", step.observations or "")]
            )

    def _take(self, lines: Iterator[TranscriptLine] | Sequence[TranscriptLine]) -> None:
        self.came += [*self._script.said, *lines]
        self._script.said = []


def _answered(answer: Message) -> Iterator[TranscriptLine]:
    yield TranscriptLine(_BOT, answer.text)
    yield from (TranscriptLine("file", each.name or each.mime_type) for each in answer.attachments)
    yield from (TranscriptLine("button", each.text) for each in answer.buttons)
