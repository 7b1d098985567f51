import io
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from botservice.conversation.agent_memory import AgentMemory, Memory
from botservice.conversation.field_values import StepError, Timing, ToolResult
from botservice.conversation.items import MemoryItem
from botservice.conversation.replay import render_steps, replay, visible
from botservice.conversation.steps import ActionStep, FinalAnswerStep, PlanningStep, TaskStep
from botservice.core.messages import Attachment, TokenUsage, ToolCall
from tests.conversation.strategies import items, names, steps, values

START = datetime(2025, 1, 1, tzinfo=UTC)


def shown(memory, *, width=80, detailed=False, **options):
    console = Console(file=io.StringIO(), width=width, **options)
    replay(memory, detailed=detailed, console=console)
    return console.file.getvalue()


@pytest.fixture
def memory():
    prompt = [
        {"role": "system", "content": "You are a bot"},
        {"role": "system", "content": "Remembered\n<memory>\nalice: my dog is Rex\n</memory>"},
        {"role": "user", "content": "hello"},
        {
            "role": "user",
            "content": [{"type": "text", "text": "add"}, {"type": "image_url", "image_url": {"url": "x"}}],
        },
    ]
    sections = {"system": [0, 1], "found": [1, 2], "window": [2, 3], "question": [3, 4]}
    first = ActionStep(
        1,
        prompt_sections=sections,
        timing=Timing(START, START + timedelta(seconds=1.25)),
        token_usage=TokenUsage(812, 20),
        model="llama",
        model_input_messages=prompt,
        tool_calls=[ToolCall("a", "add", {"x": 2, "y": [3]}), ToolCall("b", "divide", {"by": 0})],
        tool_results=[ToolResult("a", "5", duration_seconds=0.5), ToolResult("b", "Error: no", is_error=True)],
        observations="5\nError: no",
        error=StepError("ZeroDivisionError", "division by zero"),
        alert="watch out",
        observations_images=[Attachment("image/png", "plot.png", data=b"xx")],
    )
    second = ActionStep(
        2, model_input_messages=prompt, prompt_sections=sections, model_output="I know.", observations="rewritten"
    )
    return AgentMemory(
        "You are a bot", [TaskStep("What is 2 + 3?"), PlanningStep("Add."), first, second, FinalAnswerStep("Five")]
    )


def test_a_replay_shows_what_people_come_for(memory):
    text = shown(memory)
    for part in (
        "What is 2 + 3?",
        "Plan",
        "Step 1 | 1.25 s | 812 tokens in, 20 out | llama",
        "812 tokens in, 20 out",
        "my dog is Rex",
        "1 found",
        "1 window",
        "user: hello",
        "Call add",
        '{"x": 2, "y": [3]}',
        "Result (0.50 s)",
        "Call divide",
        "Failed",
        "ZeroDivisionError: division by zero",
        "alert",
        "watch out",
        "plot.png",
        "rewritten",
        "I know.",
        "Answer",
        "Five",
    ):
        assert part in text, part
    assert text.index("Task") < text.index("Step 1") < text.index("Step 2") < text.index("Five")
    assert text.count("my dog is Rex") == 1


def test_the_detailed_replay_shows_the_models_input_too(memory):
    assert "You are a bot" not in shown(memory)
    text = shown(memory, detailed=True)
    assert "System prompt" in text
    assert text.count("my dog is Rex") == 2
    assert "Prompt, found system" in text
    assert "[image]" in text


def test_long_texts_are_cut_unless_in_detail():
    memory = Memory([ActionStep(1, observations="x" * 5_000)])
    assert "3,000 more characters" in shown(memory)
    assert shown(memory, detailed=True).count("x") == 5_000


def test_markup_and_control_characters_are_shown_literally():
    nasty = "[red]not red[/red] [/] :smile: \x1b[31mred\x07\r over \x9b2J \u202egnp \ud800 end\nnext\tline"
    step = ActionStep(
        1,
        observations=nasty,
        tool_calls=[ToolCall("\x1b[0m", nasty, {"a": nasty})],
        error=StepError(nasty, nasty),
        free=nasty,
    )
    for options in ({}, {"force_terminal": True, "color_system": "truecolor"}):
        text = shown(Memory([TaskStep(nasty), step, FinalAnswerStep(nasty)]), width=200, **options)
        assert "[red]not red[/red] [/] :smile: \\x1b[31mred\\x07\\x0d over \\x9b2J \\u202egnp \\ud800 end" in text
        assert "\x1b[31mred" not in text
        assert not {"\x07", "\r", "\x9b", "\u202e", "\ud800"} & set(text)


def test_a_line_break_of_windows_is_a_line_break():
    assert visible("a\r\nb\rc\x00\x7f\u2028") == "a\nb\\x0dc\\x00\\x7f\\u2028"


def test_there_is_no_colour_in_a_pipe(memory, monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    assert "\x1b" not in shown(memory)


def test_standard_output_is_the_default(memory, capsys):
    memory.replay()
    assert "What is 2 + 3?" in capsys.readouterr().out
    memory.replay(detailed=True)
    assert "You are a bot" in capsys.readouterr().out


def test_an_output_that_lacks_characters_gets_escapes():
    raw = io.BytesIO()
    console = Console(file=io.TextIOWrapper(raw, encoding="ascii"), width=80)
    replay(Memory([TaskStep("grüße 🙂")]), console=console)
    console.file.flush()
    assert b"gr\\xfc\\xdfe \\U0001f642" in raw.getvalue()


@pytest.mark.parametrize("width", [1, 7, 20, 80, 200])
def test_nothing_is_lost_on_a_terminal_of_any_width(width):
    words = "".join(chr(ord("a") + i % 26) for i in range(150))
    text = shown(Memory([TaskStep(words)]), width=width)
    assert words in "".join(text.split())
    assert max(len(line) for line in text.splitlines()) <= width


def test_the_facts_of_a_step_fit_a_narrow_terminal(memory):
    text = shown(memory, width=20)
    assert "812 tokens in, 20 out" in " ".join(text.split())
    assert text.isascii()


@given(st.lists(items | steps, max_size=3), st.booleans(), st.sampled_from([10, 80]))
@settings(max_examples=60)
@pytest.mark.slow
def test_every_memory_can_be_shown(content, detailed, width):
    text = shown(AgentMemory("x", content), detailed=detailed, width=width)
    text.encode()
    assert "\x1b" not in text


@given(
    st.dictionaries(
        names
        | st.sampled_from(list(ActionStep(1).__dir__())).filter(
            lambda name: name[0] != "_" and name != "observations_images" and not hasattr(ActionStep, name)
        ),
        values,
        max_size=4,
    )
)
@settings(max_examples=60)
def test_whatever_a_callback_writes_can_be_shown(fields):
    step = ActionStep(1)
    step.set_values_from_dict(fields)
    shown(Memory([step]), detailed=True).encode()


def test_unknown_and_plain_items_are_shown_with_their_fields():
    unknown = MemoryItem.from_dict({"kind": "dream", "version": 1, "colour": "blue"})
    memory = Memory([unknown, MemoryItem(mood="calm")])
    memory.content.append(None)
    text = shown(memory)
    assert "Unknown kind dream" in text
    assert "blue" in text
    assert "calm" in text


def test_steps_can_be_rendered_for_another_console():
    console = Console(file=io.StringIO(), width=80)
    console.print(render_steps([TaskStep("x")], detailed=False))
    assert "x" in console.file.getvalue()
