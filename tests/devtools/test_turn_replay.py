import io
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rich.console import Console

from botservice import AgentContext, MessageWindowMessageSelector
from botservice.conversation.replay import show
from botservice.conversation.steps import FinalAnswerStep, TaskStep
from botservice.core.messages import TokenUsage
from botservice.devtools.reports import render_turns
from tests.turns.bots import add, call, fail, make_service

START = datetime(2025, 1, 1, 12, tzinfo=UTC)


@dataclass
class Turn:
    steps: list
    id: int = 7
    status: str = "done"
    outcome: str | None = "answered"
    error: str | None = None
    created_at: datetime = START
    finished_at: datetime | None = field(default=START + timedelta(seconds=2.5))
    compacted_at: datetime | None = None
    waited: tuple = ()
    worked_seconds: float | None = 2.5


def shown(*turns, detailed=False):
    console = Console(file=io.StringIO(), width=80)
    show(render_turns(turns, detailed=detailed), console)
    return console.file.getvalue()


def test_a_turn_begins_with_what_became_of_it():
    steps = [TaskStep("hi"), FinalAnswerStep("hello", token_usage=TokenUsage(10, 2))]
    text = shown(Turn(steps), Turn([], id=8, status="running", outcome=None, finished_at=None, worked_seconds=None))
    title = "== Turn 7 | 2025-01-01 12:00:00 UTC | answered | 2.50 s | 10 tokens in, 2 out"
    assert title in " ".join(text.split())
    assert "== Turn 8 | 2025-01-01 12:00:00 UTC | running" in text
    assert "hello" in text


def test_a_turn_that_lost_its_steps_says_so():
    text = " ".join(shown(Turn([], compacted_at=START + timedelta(days=30))).split())
    assert "Compacted on 2025-01-31: its steps are not kept any more (KEEP_STEPS_DAYS)" in text


def test_a_turn_that_failed_says_why_and_nothing_in_it_is_interpreted():
    text = shown(Turn([TaskStep("[red]hi\x1b[0m")], status="set_aside", outcome="failed", error="down \x07"))
    assert "[red]hi\\x1b[0m" in text
    assert "Failed: down \\x07" in text


async def test_people_find_what_they_come_for_in_the_short_form_too(sqlite_storage):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "1"})
    await context.chat_history.append_user_message("My dog is called Rex", author="alice", created_at=START)
    await context.chat_history.append_assistant_message("Nice name!")
    await context.chat_history.append_user_message("How is the weather?")
    await context.chat_history.append_assistant_message("Fine. " * 100)
    service, _ = make_service(
        sqlite_storage,
        [["I add. ", call("add", a=2, b=3)], call("fail"), "Rex, and 5"],
        tools=[add, fail],
        search_k=3,
        message_selector=MessageWindowMessageSelector(2),
    )
    await service.prompt(context, "What is my dog called, and 2 + 3?")
    text = shown(Turn(context.memory.steps))
    for part in (
        "What is my dog called, and 2 + 3?",
        "1 system, 2 window, 1 found, 1 question",
        "Found",
        "[2025-01-01 12:00 UTC] alice: My dog is called Rex",
        "Window",
        "user: How is the weather?",
        "assistant: Fine. Fine.",
        "-- Step 1 |",
        "I add.",
        "Call add",
        '{"a": 2, "b": 3}',
        "Result (0.",
        "Call fail",
        "Failed (0.",
        "ValueError: it broke",
        "-- Answer |",
        "tokens in",
        "Rex, and 5",
    ):
        assert part in text, part
    assert text.count("alice: My dog is called Rex") == 1
    assert max(map(len, text.splitlines())) <= 80
    assert "\nError" not in text
    assert "Remembered from earlier" not in text
    assert shown(Turn(context.memory.steps), detailed=True).count("Remembered from earlier") == 3
