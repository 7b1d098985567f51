"""The model that answers where none is configured: a script that says so, remembers, and uses a tool."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from botservice.llm.chat import ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.messages import ToolCall

_REMINDER = (
    "(I am a demo script. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own, to get a real model.)"
)
INTRODUCTION = (
    "I am a demo: a small script, not a language model. Tell me something, such as “My dog is called Rex”, and ask me "
    "about it later; I look it up in all that you said. Say “remember that I eat no meat”, and /memory lists it. I can "
    "also tell the time, with a tool. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own, to talk to a "
    "real model."
)
_GREETING = re.compile(r"\W*(hi|hello|hey|help|/start|good (morning|evening|day))\b.{0,20}", re.IGNORECASE)
_ABOUT_ITSELF = re.compile(r"\b(who|what) are you\b", re.IGNORECASE)
_TIME = re.compile(
    r"(?!.*\bmy\b)(.*\bwhat\b.*|\W*)\b(time|date|day)( is it| is today| today| now)*\W*", re.IGNORECASE | re.DOTALL
)
_REMIND = re.compile(
    r"\W*(?:please\s+)?remind me in (?P<count>\d{1,6}) (?P<unit>minute|hour|day)s? "
    r"(?:to |that |about |of )?(?P<text>.+)",
    re.IGNORECASE | re.DOTALL,
)
_QUESTION = re.compile(
    r"[?\uff1f\u061f]\s*$|^\s*(what|who|where|when|which|how|why|do|does|did|is|are|can|could|tell me|remind me)\b",
    re.IGNORECASE,
)
_WISH = re.compile(r"\W*(?:please\s+)?remember(?:\s+that|\s*:)\s+(?P<fact>.+)", re.IGNORECASE | re.DOTALL)
_KNOWN = re.compile(r"^\[#\d+, (?P<date>[\d-]+)\] (?P<text>.+)$", re.MULTILINE)
_REMEMBERED = re.compile(r"^\[(?P<date>[\d-]+) [\d:]+ UTC\] (?P<author>[^:\n]+): (?P<text>.+)$", re.MULTILINE)
_PIECES = re.compile(r"\S+\s*")
_LONGEST_SHORT = 200
_MAX_SHOWN = 2


class DemoChatLLM:
    """Follows a script that depends on nothing but the prompt."""

    model = "demo"

    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, on_text: TextSink | None = None
    ) -> ChatResponse:
        """Return what the script says to the last message of a person."""
        text = next((_text(message) for message in reversed(messages) if message["role"] == "user"), "")
        if messages and messages[-1]["role"] == "tool":
            answer = f"My tool says: {_text(messages[-1])}"
        elif (call := _called(text, tools)) is not None:
            return ChatResponse("", (call,))
        elif _asks_for_the_time(text) and any(tool["function"]["name"] == "current_time" for tool in tools):
            return ChatResponse("", (ToolCall("demo_call", "current_time", {}),))
        elif (wish := _WISH.fullmatch(text)) and any(tool["function"]["name"] == "remember" for tool in tools):
            return ChatResponse("", (ToolCall("demo_call", "remember", {"text": wish["fact"][:500]}),))
        elif (reminder := _REMIND.fullmatch(text)) and any(tool["function"]["name"] == "remind_me" for tool in tools):
            wait = {f"in_{reminder['unit'].lower()}s": int(reminder["count"])}
            return ChatResponse("", (ToolCall("demo_call", "remind_me", {"text": reminder["text"].strip(), **wait}),))
        elif _GREETING.fullmatch(text) or _ABOUT_ITSELF.search(text):
            answer = f"Hello! {INTRODUCTION}"
        elif _QUESTION.search(text):
            answer = _recall(text, messages)
        else:
            answer = f"I will remember that. Ask me about it at any time.\n{_REMINDER}"
        if on_text is not None:
            for piece in _PIECES.findall(answer):
                on_text(piece)
        return ChatResponse(answer)


def _called(text: str, tools: Sequence[ToolSchema]) -> ToolCall | None:
    """Return the call of a tool whose name a message begins with: `add 2 3`, or `add a=2 b=3`."""
    try:
        name, *words = shlex.split(text)
    except ValueError:  # there is nothing, or a quotation mark that stands alone
        return None
    found = next((tool["function"]["parameters"] for tool in tools if tool["function"]["name"] == name), None)
    if found is None:
        return None
    parameters = found.get("properties", {})
    arguments: dict[str, str] = {}
    for parameter, word in zip(parameters, words, strict=False):
        named, _, value = word.partition("=")
        arguments.update({named: value} if named in parameters else {parameter: word})
    return ToolCall("demo_call", name, {each: _value(word, parameters[each]) for each, word in arguments.items()})


def _value(word: str, schema: Mapping[str, Any]) -> Any:
    if schema.get("type") == "string":
        return word
    try:
        return json.loads(word)
    except ValueError:
        return word


def _recall(question: str, messages: Sequence[ChatMessage]) -> str:
    """Return what a person said that has most in common with the question, found or still in view."""
    wanted = _features(question)
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    said = {text: date for message in messages[:last] for text, date in _said(message) if not _QUESTION.search(text)}
    common = {text: len(wanted & _features(text)) for text in said}
    most = max(common.values(), default=0)
    if most == 0:
        return f"You have not told me anything about that yet.\n{_REMINDER}"
    best = [(text, date) for text, date in said.items() if common[text] == most]
    return "\n".join(f"You told me{f' on {date}' if date else ''}: “{text}”" for text, date in best[-_MAX_SHOWN:])


def _said(message: ChatMessage) -> Iterator[tuple[str, str]]:
    """Yield what a person says in a message of a prompt, with the date where it has one."""
    text = _text(message)
    found = [match for pattern in (_KNOWN, _REMEMBERED) for match in pattern.finditer(text)]
    yield from ((each["text"], each["date"]) for each in found if each.groupdict().get("author") != "assistant")
    if not found and message["role"] == "user" and len(text) < _LONGEST_SHORT:
        yield text, ""


def _features(text: str) -> set[str]:
    """Return the words of text; where words are not parted by blanks, pairs of letters have to do."""
    words = re.findall(r"\w{3,}", text.casefold())
    return {*words, *(word[at : at + 2] for word in words if not word.isascii() for at in range(len(word) - 1))}


def _text(message: ChatMessage) -> str:
    content: Any = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content or () if isinstance(part, dict))


def _asks_for_the_time(text: str) -> bool:
    return len(text) < _LONGEST_SHORT and _TIME.fullmatch(text) is not None
