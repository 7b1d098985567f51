"""The timeline of a turn: everything that took time is in it, and people's time is not the step's."""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from standins.payments import Till, cashier
from standins.tools import add
from turns.bots import waiting_call

from botservice import ActionStep, LLMError, TaskStep, Timing, TokenUsage, ToolCall, ToolResult
from botservice.conversation.steps import FailedStep, FinalAnswerStep
from botservice.conversation.tool_calls import DENIED
from botservice.core.states import PendingStatus
from botservice.devtools.queries import TurnDetails
from transports.web.inspector_spans import Scale, SpanKind, TimeSpan
from transports.web.inspector_timeline import draw_timeline

START = datetime(2026, 1, 1, tzinfo=UTC)
HOURS = 3_600.0
PAY = ToolCall("1", "pay", {"to": "Anna"})


def at(seconds):
    return None if seconds is None else START + timedelta(seconds=seconds)


def turn(*, started=None, finished=None, status="done", outcome="answered", sent=(), received=0.0):
    row = {"id": 5, "created_at": START, "started_at": at(started), "finished_at": at(finished)}
    deliveries = [
        SimpleNamespace(created_at=at(begin), finished_at=at(end), status="delivered", attempts=1)
        for begin, end in sent
    ]
    row = SimpleNamespace(**row, status=status, outcome=outcome if finished is not None else None)
    return TurnDetails(row, None, at(received), None, deliveries, (0, 0), None, None)


def waiting(created, decided):
    status = PendingStatus.WAITING if decided is None else PendingStatus.ALLOWED
    times = {"created_at": at(created), "decided_at": at(decided), "expires_at": at(1_000_000)}
    return waiting_call(**times, status=status, is_open=decided is None)


def action(begin, end, attempts, *, results=(), calls=(PAY,), number=1):
    return ActionStep(
        number,
        timing=Timing(at(begin), at(end)),
        tool_calls=list(calls),
        tool_results=list(results),
        model_attempts=attempts,
        token_usage=TokenUsage(10, 2),
    )


def answer(begin, end):
    return FinalAnswerStep("done", timing=Timing(at(begin), at(end)), model_attempts=[{"ended": end - begin}])


def told(span):
    """Return what a person reads of a span and of what is directly below it."""
    return [(each.name, each.begin, each.end) for each in span.children]


def covered(span):
    """Return the seconds of a span that nothing below it accounts for."""
    left, reached = 0.0, span.begin
    for each in sorted(span.children, key=lambda each: each.begin):
        left += max(0.0, each.begin - reached)
        reached = max(reached, each.end)
    return left + max(0.0, span.end - reached)


def test_a_persons_wait_stands_in_the_step_and_is_not_its_duration():
    attempts = [{"asked": 0.5, "ended": 2.0}]
    step = action(1, 2 * HOURS + 10, attempts, results=[ToolResult("1", "paid", duration_seconds=1.0)])
    details = turn(started=0.5, finished=2 * HOURS + 15, sent=[(3.4, 4.0), (2 * HOURS + 15, 2 * HOURS + 16)])
    calls = [waiting(3.25, 2 * HOURS + 3.25)]
    root = draw_timeline(details, [TaskStep("pay"), step, answer(2 * HOURS + 12, 2 * HOURS + 15)], calls, [0, 1, 2])
    assert [name for name, _, _ in told(root)] == [
        *("Question", "In the queue", "Storing the question", "Step 1", "Delivery 1", "Storing step 1", "Answer"),
        "Storing and delivery 2",
    ]
    shown = next(each for each in root.children if each.name == "Step 1")
    assert told(shown) == [
        ("Reading history", 1.0, 1.5),
        ("Model", 1.5, 3.0),
        ("Storing the calls", 3.0, 3.25),
        ("Approval of pay", 3.25, 2 * HOURS + 3.25),
        ("In the queue again", 2 * HOURS + 3.25, 2 * HOURS + 9),
        ("pay", 2 * HOURS + 9, 2 * HOURS + 10),
    ]
    assert shown.took == pytest.approx(9.0)
    assert root.took == pytest.approx(15.0)
    assert root.waited == pytest.approx(2 * HOURS)
    assert covered(root) == covered(shown) == 0


def test_a_call_that_still_waits_lasts_and_so_does_its_step():
    step = action(1, None, [{"ended": 1.0}])
    root = draw_timeline(turn(started=1, status="waiting", outcome=None), [step], [waiting(2, None)], [0])
    lasting = [each.name for each in root.below() if each.took is None]
    assert lasting == ["Turn 5", "Step 1", "Approval of pay"]


def test_a_call_that_was_denied_did_not_run_and_did_not_fail():
    step = action(0, 9, [{"ended": 1.0}], calls=[ToolCall("1", "pay", {})], results=[ToolResult("1", DENIED, True)])
    denied = replace(waiting(2, 6), status=PendingStatus.DENIED)
    shown = next(iter(draw_timeline(turn(started=0, finished=10), [step], [denied], [0]).below()))
    names = [(each.name, each.is_bad, each.note) for each in shown.below() if "pay" in each.name]
    assert names == [("Approval of pay", False, "denied")]
    assert "In the queue again" in [each.name for each in shown.below()]


def test_overlapping_waits_of_a_step_are_taken_off_once():
    calls = [ToolCall("1", "pay", {}), ToolCall("2", "pay", {})]
    step = action(0, 100, [{"ended": 1.0}], calls=calls, results=[ToolResult("1", "x"), ToolResult("2", "y")])
    second = replace(waiting(2, 92), call_index=1, call_id="2")
    root = draw_timeline(turn(started=0, finished=100), [step], [waiting(2, 50), second], [0])
    assert root.children[-1].took == pytest.approx(10.0)


def test_the_time_in_which_no_process_was_at_work_is_not_taken_for_storing():
    steps = [action(1, 2, [{"ended": 1.0}]), answer(9, 10)]
    root = draw_timeline(turn(started=8, finished=10), steps, [], [0, 0])
    assert ("Cut off, until it went on", 2.0, 9.0) in told(root)


def test_a_turn_that_was_tried_again_shows_the_time_between():
    failed = FailedStep(1, timing=Timing(at(1), at(3)), model_attempts=[{"ended": 2.0, "error": "LLMError: away"}])
    details = turn(started=HOURS, finished=HOURS + 5)
    root = draw_timeline(details, [failed, answer(HOURS + 1, HOURS + 5)], [], [0, 0])
    assert told(root) == [
        ("In the queue", 0.0, 1.0),
        ("Step 1", 1.0, 3.0),
        ("Until the next try", 3.0, HOURS + 1),
        ("Answer", HOURS + 1, HOURS + 5),
    ]
    model = root.children[1].children[0]
    assert (model.name, model.is_bad, model.note) == ("Model", True, "LLMError: away")


def test_calls_run_side_by_side_and_end_with_their_step():
    calls = [ToolCall("1", "a", {}), ToolCall("2", "b", {})]
    results = [ToolResult("1", "x", duration_seconds=4.0), ToolResult("2", "no", is_error=True, duration_seconds=1.0)]
    step = action(0, 10, [{"ended": 2.0}], calls=calls, results=results)
    root = draw_timeline(turn(started=0, finished=10), [step], [], [0])
    assert told(root.children[-1]) == [
        ("Model", 0.0, 2.0),
        ("Storing the calls", 2.0, 6.0),
        ("a", 6.0, 10.0),
        ("b", 6.0, 7.0),
    ]
    assert [each.is_bad for each in root.children[-1].children] == [False, False, False, True]


def test_a_turn_in_the_queue_and_one_at_work_say_so():
    queued = draw_timeline(turn(status="queued"), [], [], [])
    assert told(queued) == [("In the queue", 0.0, None)]
    running = draw_timeline(turn(status="running", started=2), [TaskStep("x")], [], [0])
    assert told(running) == [("Question", 0.0, 0.0), ("In the queue", 0.0, 2.0), ("At work", 2.0, None)]


def test_the_work_at_which_a_turn_was_stopped_is_no_work_on_its_end():
    stopped = draw_timeline(turn(started=2, finished=9, outcome="stopped"), [TaskStep("x")], [], [0])
    assert told(stopped)[-1] == ("At work until stopped", 2.0, 9.0)


def test_clocks_that_go_back_give_no_negative_times():
    step = action(5, 4, [{"ended": 0.5}], results=[ToolResult("1", "x", duration_seconds=9.0)])
    root = draw_timeline(turn(started=6, finished=1, received=-3), [TaskStep("x"), step], [waiting(9, 2)], [0, 0])
    assert all(each.begin >= 0 and (each.took or 0) >= 0 for each in root.below())
    bar = Scale(root, 1_000).draw(root, 4)
    assert 0 <= bar.x <= 996


def test_a_wait_of_hours_leaves_room_for_seconds_in_the_picture():
    parts = (
        TimeSpan("model", SpanKind.MODEL, 0, 3),
        TimeSpan("approval", SpanKind.PERSON, 3, 10_000),
        TimeSpan("tool", SpanKind.TOOL, 10_000, 10_003),
    )
    root = TimeSpan("turn", SpanKind.TURN, 0, 10_003, children=parts)
    scale = Scale(root, 1_000)
    model, approval, tool = scale.draw(root, 4).children
    assert scale.is_shrunk
    assert (model.x, model.width, approval.x, approval.width, tool.x, tool.width) == (0, 333, 333, 334, 667, 333)
    assert not Scale(TimeSpan("turn", SpanKind.TURN, 0, 1, children=parts[:1]), 1_000).is_shrunk


async def test_the_page_tells_a_wait_of_a_person_apart_from_the_work(run_site):
    till = Till()
    async with run_site(cashier(), tools=till.tools) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("pay her")
            asked = await events.until("notice", lambda data: data.get("buttons"))
            page = (await visitor.client.get("/inspect/1/1")).text
            assert "Awaiting approval" in page
            assert "Approval of pay" in page
            decides = asked.data["buttons"][0]["decides"]
            await visitor.post("/web/decide", {"id": "decision-1", "text": decides})
            await events.until_answered()
        page = (await visitor.client.get("/inspect/1/1")).text
        assert "waiting for a person" in page
        assert "Awaiting approval" not in page
    assert till.paid


async def test_every_line_of_the_timeline_leads_to_something_on_the_page(run_site):
    script = [ToolCall("", "add", {"a": 2, "b": 3}), "Five", LLMError("no such key", is_transient=False)]
    async with run_site(script, tools=[add]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("2 + 3?")
            await events.until_answered()
            await visitor.say("again")
            await events.until("notice")
        for path in ("/inspect/1/1", "/inspect/1/2"):
            page = (await visitor.client.get(path)).text
            targets = re.findall(r'class="span[^"]*" href="#([^"]+)"', page)
            assert len(targets) >= 6
            assert all(page.count(f'id="{each}"') == 1 for each in targets), path
