"""Chats in text files: played, and compared with what comes."""

from typing import Any

import pytest
from standins.tools import add

from botservice import AgentService, BotServiceError, Button, ChatLLM, FunctionsBasedAgent, Later, tool
from botservice.testing import TranscriptLine, assert_transcript, compare, play

PAID: list[tuple[int, str]] = []


@tool(needs_approval=True)
async def pay(amount: int, to: str) -> str:
    """Pay a person."""
    PAID.append((amount, to))
    return f"{amount} paid to {to}"


@tool(is_final=True)
async def offer() -> list[Any]:
    """Offer sizes."""
    return ["Which size?", Button("Small"), Button("Large")]


@tool
async def render() -> Later:
    """Render for hours."""
    return Later("job-1", hours=5)


def make_service(llm: ChatLLM) -> AgentService:
    return AgentService(FunctionsBasedAgent(tools=[pay, add, offer, render], llm=llm))


CHATS = {
    "a question": """
you: Hello
bot: Good day.
  How are you?
""",
    "calls": """
you: Sums
bot: I add.
call: add {"a": 1, "b": 2}
call: add {"a": 3, "b": 4}
result: 3
result: 7
bot: 3, 7
""",
    "a wrong call": """
you: Sum
call: add {"a": "x", "b": 2}
error: Error: the arguments of add do not fit: …
bot: No.
""",
    "a final tool": """
you: Tea
call: offer {}
result: …
bot: Which size?
button: Small
button: Large
you: Hm
bot: Hm?
""",
    "a word": """
you: Pay
call: pay {"amount": 3, "to": "Ann"}
asks: pay {"amount": 3, "to": "Ann"}
you: /allow
result: 3 paid to Ann
bot: Done.
""",
    "a later result": """
you: Film
call: render {}
later: job-1
you: Still there?
bot: Yes.
""",
}


@pytest.mark.parametrize("text", CHATS.values(), ids=CHATS)
async def test_a_chat_that_goes_as_its_file_says_differs_in_nothing(text: str) -> None:
    assert compare(text, await play(text, make_service)) == ""


async def test_what_is_denied_is_not_done() -> None:
    PAID.clear()
    call = 'pay {"amount": 3, "to": "Ann"}'
    text = f"you: Pay\ncall: {call}\nasks: {call}\nyou: /deny\nresult: anything\nbot: As you like.\n"
    played = await play(text, make_service)
    assert PAID == []
    assert "error: Denied" in played


async def test_of_several_calls_each_waits_for_its_word() -> None:
    PAID.clear()
    calls = ['pay {"amount": 1, "to": "Ann"}', 'pay {"amount": 2, "to": "Bob"}']
    text = "you: Pay\n" + "".join(f"call: {call}\n" for call in calls) + "you: /deny\nyou: /allow\nbot: Half of it.\n"
    assert "result: 1 paid to Ann" in await play(text, make_service)
    assert PAID == [(1, "Ann")]


def test_a_file_that_says_something_else_fails_and_shows_both(tmp_path: Any) -> None:
    file = tmp_path / "sum.txt"
    file.write_text('# sums\nyou: Sum\ncall: add {"a": 1, "b": 2}\nresult: 4\nbot: It is 4.\n')
    with pytest.raises(AssertionError, match=r"(?s)sum\.txt.*-result: 4\n\+result: 3"):
        assert_transcript(file, make_service)
    file.write_text(file.read_text().replace("result: 4", "result: 3"))
    assert_transcript(file, make_service)


async def test_a_model_that_is_asked_too_often_is_said_to_be() -> None:
    assert "error: the model is asked once more" in await play('you: Sum\ncall: add {"a": 1, "b": 2}\n', make_service)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("bot: Hello\n", "begins with what a person says"),
        ("you: a\nme: b\n", "line 2"),
        ("you: a\ncall: add {a}\n", "no JSON"),
    ],
)
async def test_what_is_no_transcript_names_its_line(text: str, reason: str) -> None:
    with pytest.raises(BotServiceError, match=reason):
        await play(text, make_service)


@pytest.mark.parametrize(
    ("wanted", "said", "same"),
    [
        ("the same", "the same", True),
        ("the same", "the same thing", False),
        ("a … c", "a b c", True),
        ("a … c", "a b c d", False),
        ("…b…", "abc", True),
        ("ab…ba", "aba", False),
        ("a…b…a", "a a", False),
        ("…", "", True),
    ],
)
def test_dots_stand_for_whatever_is_said_there(wanted: str, said: str, *, same: bool) -> None:
    assert TranscriptLine("bot", wanted).matches(TranscriptLine("bot", said)) is same
