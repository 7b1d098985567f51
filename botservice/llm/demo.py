"""The model that answers where none is configured: a script that says so, remembers, and uses tools."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from botservice.core.messages import ToolCall
from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.llm.demo_calls import describe_call, read_call
from botservice.llm.demo_sentences import (
    Introduction,
    asks_for_abilities,
    asks_for_the_name,
    find_introduction,
    find_wish,
    is_greeting,
    is_question,
    is_starter,
    statement_of,
)

REMINDER: Final = (
    "(I am a demo script. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own, to get a real model.)"
)
SELF: Final = "I am a demo: a small script, not a language model."
_NAME_TOPIC: Final = "name"
_TIME: Final = re.compile(
    r"(?!.*\bmy\b)(.*\bwhat\b.*|\W*)\b(time|date|day)( is it| is today| today| now)*\W*", re.IGNORECASE | re.DOTALL
)
_REMIND: Final = re.compile(
    r"\W*(?:please\s+)?remind me in (?P<count>\d{1,6}) (?P<unit>minute|hour|day)s? "
    r"(?:to |that |about |of )?(?P<text>.+)",
    re.IGNORECASE | re.DOTALL,
)
_TEA: Final = re.compile(
    r"\W*(?:please\s+)?(?:order|get me|i would like|i'd like)\s+(?P<cups>\d{1,2}|an?|one|two|three|four)\s+"
    r"(?:cups? of\s+)?teas?\W*(?:please\W*)?",
    re.IGNORECASE,
)
_NUMBERS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4}
_KNOWN: Final = re.compile(rf"^\[#\d+, (?P<date>[\d-]+)\] (?:{_NAME_TOPIC}: )?(?P<text>.+)$", re.MULTILINE)
_REMEMBERED: Final = re.compile(r"^\[(?P<date>[\d-]+) [\d:]+ UTC\] (?P<author>[^:\n]+): (?P<text>.+)$", re.MULTILINE)
_NOTED: Final = re.compile(r"Noted as #\d+: (?P<text>.+)", re.DOTALL)
_NOT_MADE: Final = ("Denied: ", "Not made: ")  # what a model is told of a call that nobody allowed
_FILE: Final = re.compile(r"^\[(?:file|picture|audio|video)[,:\]].*", re.DOTALL | re.MULTILINE)
_KNOW_OF_ME: Final = re.compile(r"\W*(?:what|do you)\b.*\bknow (?:of|about) me\W*", re.IGNORECASE)
_THANKS: Final = re.compile(r"\W*(?:many thanks|thanks(?: a lot)?|thank you(?: very much)?)\W*", re.IGNORECASE)
_PIECES: Final = re.compile(r"\S+\s*")
_LONGEST_SHORT: Final = 200
_MAX_SHOWN: Final = 2
_MAX_LISTED: Final = 8
# The tools of every service: what they are good for is told in other words.
_STANDARD: Final = frozenset(
    {"cancel_reminder", "current_time", "forget_fact", "list_reminders", "order_tea", "recall", "remember", "remind_me"}
)


class DemoChatLLM(ChatLLM):
    """Follows a script that depends on nothing but the prompt."""

    model = "demo"

    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, on_text: TextSink | None = None
    ) -> ChatResponse:
        """Return what the script says to the last message of a person."""
        asked = next((message for message in reversed(messages) if message["role"] == "user"), None)
        text = "" if asked is None else _FILE.sub("", _text(asked)).strip()
        if messages and messages[-1]["role"] == "tool":
            answer = _tell_result(text, messages, tools)
        elif (call := _find_call(text, tools)) is not None:
            return ChatResponse("", (call,))
        elif asked is not None and _has_files(asked):
            answer = f"A script cannot read files: a model can.\n\n{REMINDER}"
        else:
            answer = _answer(text, messages, tools)
        if on_text is not None:
            for piece in _PIECES.findall(answer):
                on_text(piece)
        return ChatResponse(answer)


def _find_call(text: str, tools: Sequence[ToolSchema]) -> ToolCall | None:
    """Return the call that a message leads to: for what it says, or because it begins with the name of a tool."""
    name, arguments = _find_meaning(text)
    if name in {tool["function"]["name"] for tool in tools}:
        return ToolCall("demo_call", name, arguments)
    return read_call(text, tools)


def _find_meaning(text: str) -> tuple[str, dict[str, Any]]:
    """Return the name of the tool that would do what a message wants, and the arguments; an empty name for none."""
    if _asks_for_the_time(text):
        return "current_time", {}
    if (wish := find_wish(text)) is not None:
        introduction = find_introduction(wish)
        topic = {"topic": _NAME_TOPIC} if introduction is not None and introduction.is_certain else {}
        return "remember", {"text": wish, **topic}
    if (reminder := _REMIND.fullmatch(text)) is not None:
        wait = {f"in_{reminder['unit'].lower()}s": int(reminder["count"])}
        return "remind_me", {"text": reminder["text"].strip(), **wait}
    if (tea := _TEA.fullmatch(text)) is not None or is_starter("starters.order", text):
        cups = "two" if tea is None else tea["cups"].casefold()
        return "order_tea", {"cups": _NUMBERS.get(cups) or int(cups)}
    if (introduction := find_introduction(text)) is not None:
        topic = {"topic": _NAME_TOPIC} if introduction.is_certain else {}
        return "remember", {"text": introduction.said, **topic}
    return "", {}


def _tell_result(text: str, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema]) -> str:
    """Return what is said when a tool has run."""
    result = _text(messages[-1])
    if result.startswith(_NOT_MADE):
        return f"Then I leave it.\n\n{REMINDER}"
    introduction = find_introduction(text)
    if introduction is not None and find_wish(text) is None and _is_after("remember", messages):
        return _greet(text, introduction, tools)
    if (noted := _NOTED.fullmatch(result)) is not None and _is_after("remember", messages):
        return f"Noted: **{_escaped(noted['text'])}**\n\n`/memory` lists what I know of you.\n\n{REMINDER}"
    return f"My tool says: {result}"


def _answer(text: str, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema]) -> str:
    """Return what is said to a message for which no tool is used."""
    introduction = find_introduction(text)
    if introduction is not None and introduction.is_certain:
        return _greet(text, introduction, tools)
    if (polite := _answer_person(text, messages)) is not None:
        return polite
    if asks_for_abilities(text) or (is_greeting(text) and not is_question(text)):
        return f"Hello! {_introduce(tools)}"
    if (known := _find_usage(text, tools)) is not None:
        return f"To have me use it, write: `{known}`\n\n{REMINDER}"
    if is_question(text):
        return _recall(text, messages)
    return f"Ask me about that later: I find what you told me.\n\n{REMINDER}"


def _answer_person(text: str, messages: Sequence[ChatMessage]) -> str | None:
    """Return what is said to questions about the person who asks, and to thanks; None for anything else."""
    if asks_for_the_name(text):
        return _tell_name(messages)
    if _KNOW_OF_ME.fullmatch(text):
        return _tell_known(messages)
    return "You are welcome!" if _THANKS.fullmatch(text) else None


def _greet(text: str, introduction: Introduction, tools: Sequence[ToolSchema]) -> str:
    if not introduction.is_certain:
        return f"Noted: **{_escaped(introduction.said)}**\n\n`/memory` lists what I know of you.\n\n{REMINDER}"
    hello = f"Hello, {_escaped(introduction.name)}!"
    if asks_for_abilities(text) or is_greeting(text):
        return f"{hello} {_introduce(tools)}"
    return f"{hello} I will remember your name.\n\n{REMINDER}"


def _introduce(tools: Sequence[ToolSchema]) -> str:
    """Return what the demo can do with these tools, as a list in Markdown."""
    names = {tool["function"]["name"] for tool in tools}
    can = ["**Remember you**: say “My dog is called Rex”, and ask “What is my dog called?” later"]
    if "remember" in names:
        can.append("**Note a wish**: say “remember that I eat no meat”; `/memory` lists it")
    if "current_time" in names:
        can.append("**Use a tool**: ask “What time is it?”")
    if "order_tea" in names:
        can.append("**Ask before I act**: say “Order two cups of tea”, and allow or deny it")
    if "remind_me" in names:
        can.append("**Remind you**: say “remind me in 5 minutes to call Anna”")
    own = [tool for tool in tools if tool["function"]["name"] not in _STANDARD]
    can += [f"**Your tool**: write `{describe_call(each)}`" for each in own[:_MAX_LISTED]]
    return "\n".join((SELF, "", *(f"- {each}" for each in can), "", REMINDER))


def _find_usage(text: str, tools: Sequence[ToolSchema]) -> str | None:
    """Return how a tool is called that a message names, where it does not call it."""
    said = set(re.findall(r"\w+", text.replace(": ", "__")))
    words = " ".join(text.split()).casefold()
    for tool in tools:
        name = tool["function"]["name"]
        spoken = re.escape(name.replace("__", ": ").replace("_", " ").casefold())
        is_quoted = re.search(rf"[“„«「\"]\s?{spoken}\s?[”“»」\"]", words) is not None
        is_asked_about = is_quoted or (is_question(text) and "_" in name and name in said)
        if name not in _STANDARD and (is_asked_about or words.rstrip("?!.").split(" ")[:1] == [name.casefold()]):
            return describe_call(tool)
    return None


def _tell_name(messages: Sequence[ChatMessage]) -> str:
    """Return the name that a person gave last; what surely is a name before what may be one."""
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    said = [text for message in messages[:last] for text, _ in _said(message)]
    given = [found for text in said if (found := find_introduction(text)) is not None]
    given.sort(key=lambda introduction: introduction.is_certain)
    if not given:
        return f"You have not told me your name yet. Say “My name is …”.\n{REMINDER}"
    return f"You are **{_escaped(given[-1].name)}**. You told me: “{given[-1].said}”\n\n{REMINDER}"


def _tell_known(messages: Sequence[ChatMessage]) -> str:
    """Return what is noted of the person, and where the rest is found."""
    known = [match["text"] for message in messages for match in _KNOWN.finditer(_text(message))]
    if not known:
        return f"Nothing is noted of you yet. Ask me about anything that you told me in this chat.\n\n{REMINDER}"
    noted = "\n".join(f"- {_escaped(each)}" for each in dict.fromkeys(known))
    return f"You told me:\n\n{noted}\n\n`/memory` corrects and deletes it.\n\n{REMINDER}"


def _recall(question: str, messages: Sequence[ChatMessage]) -> str:
    """Return what a person said that has most in common with the question, found or still in view."""
    wanted = _features(question)
    last = max(place for place, message in enumerate(messages) if message["role"] == "user")
    said = {statement_of(text): date for message in messages[:last] for text, date in _said(message)}
    common = {text: len(wanted & _features(text)) for text in said}
    most = max(common.values(), default=0)
    if most == 0:
        return f"You have not told me anything about that yet, and I know nothing else.\n\n{REMINDER}"
    best = [(text, date) for text, date in said.items() if common[text] == most]
    return "\n".join(f"You told me{f' on {date}' if date else ''}: “{text}”" for text, date in best[-_MAX_SHOWN:])


def _said(message: ChatMessage) -> Iterator[tuple[str, str]]:
    """Yield what a person says in a message of a prompt, with the date where it has one."""
    text = _text(message)
    found = [match for pattern in (_KNOWN, _REMEMBERED) for match in pattern.finditer(text)]
    yield from ((each["text"], each["date"]) for each in found if each.groupdict().get("author") != "assistant")
    if not found and message["role"] == "user" and len(text) < _LONGEST_SHORT:
        yield text, ""


def _is_after(name: str, messages: Sequence[ChatMessage]) -> bool:
    """Return whether the last message is a result of the tool of this name."""
    calls: Any = next((each["tool_calls"] for each in reversed(messages) if each.get("tool_calls")), ())
    return any(call["function"]["name"] == name for call in calls)


def _has_files(message: ChatMessage) -> bool:
    content: Any = message.get("content")
    has_pictures = isinstance(content, list) and any(part.get("type") == "image_url" for part in content)
    return has_pictures or _FILE.search(_text(message)) is not None


def _features(text: str) -> set[str]:
    """Return the words of text; where words are not parted by whitespace, pairs of letters have to do."""
    words = re.findall(r"\w{3,}", text.casefold())
    return {*words, *(word[at : at + 2] for word in words if not word.isascii() for at in range(len(word) - 1))}


def _text(message: ChatMessage) -> str:
    content: Any = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content or () if isinstance(part, dict))


def _escaped(text: str) -> str:
    """Return text that means nothing in Markdown."""
    return re.sub(r"([\\`*_\[\]<>~|])", r"\\\1", " ".join(text.split()))


def _asks_for_the_time(text: str) -> bool:
    return is_starter("starters.time", text) or (len(text) < _LONGEST_SHORT and _TIME.fullmatch(text) is not None)
