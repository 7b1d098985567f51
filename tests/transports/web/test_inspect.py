"""The inspector: everything that is kept of a conversation can be read, and nothing in it can do anything."""

import html
import json
import re
from datetime import UTC, datetime, timedelta

from sqlalchemy import func, select

from botservice import (
    ActionStep,
    AgentContext,
    LLMError,
    Observer,
    ScriptedChatLLM,
    StepError,
    TaskStep,
    Timing,
    TokenUsage,
    ToolCall,
    ToolResult,
    tool,
)
from botservice.conversation.pausing import Pause, set_pause
from botservice.storage.tables.columns import metadata
from botservice.telemetry.logs import register_secret
from transports.web.inspector_steps import show_steps
from transports.web.inspector_turn_lines import show_preview

PAGE = {"Accept": "text/html"}
EVIL = "<script>alert(1)</script>"


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    if b == 13:
        raise ValueError(f"no {b}, {EVIL}")
    return a + b


SCRIPT = [
    ["I will add. ", ToolCall("", "add", {"a": 2, "b": 3}), ToolCall("", "add", {"a": 1, "b": 13})],
    f"It is 5 {EVIL}",
]


def words(page: str) -> str:
    """Return what a person reads."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)))


async def count_rows(site) -> dict[str, int]:
    return await site.storage.read(
        lambda connection: {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in metadata.sorted_tables
        }
    )


async def test_a_turn_is_told_from_the_question_to_the_delivery(run_site, storage_url):
    async with run_site(SCRIPT, tools=[add], storage_url=storage_url) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say(f"What is 2 + 3? {EVIL}", name=EVIL)
            await events.until_answered()
        before = await count_rows(site)
        contexts = (await visitor.client.get("/inspect", headers=PAGE)).text
        assert "2 messages" in words(contexts)
        turns = (await visitor.client.get("/inspect/1", headers=PAGE)).text
        assert "Answered" in words(turns)
        assert "Tool failed" in words(turns)
        assert "1 step" in words(turns)
        turn = (await visitor.client.get("/inspect/1/1", headers=PAGE)).text
        for page in (contexts, turns, turn):
            assert EVIL not in page
            assert EVIL in html.unescape(page)
        told = words(turn.replace(html.escape(EVIL), ""))
        for piece in (
            "Question What is 2 + 3?",
            "What the model was given",
            "You are a helpful assistant",
            "I will add.",
            'Call add {"a": 2, "b": 3}',
            "Result (",
            'Call add {"a": 1, "b": 13}',
            "Failed (",
            "no 13,",
            "tokens in",
            "Answer",
            "It is 5",
            "web message, delivered after 1 try",
        ):
            assert piece in told, piece
        assert await count_rows(site) == before


async def test_notes_are_shown_with_their_chat_and_deleted_by_a_button(run_site):
    async with run_site("Fine.") as site:
        chat = await AgentContext.get_or_create(site.storage, {"transport": "web", "session_id": "x"})
        said = await chat.chat_history.append_user_message(f"We go to {EVIL}")
        note = {"text": f"We go to {EVIL}", "messages": [said.id], "earlier": []}
        answer = json.dumps({"notes": [note, {**note, "text": "We go"}], "facts": []})
        await Observer(site.storage, ScriptedChatLLM([answer])).observe(chat)
        visitor = await site.visitor()
        page = (await visitor.client.get(f"/inspect/{chat.id}", headers=PAGE)).text
        assert EVIL not in page
        assert f"N1 We go to {EVIL}" in words(page)
        target = f"/inspect/{chat.id}/notes/1/delete"
        assert (await visitor.client.post(target, headers={"Origin": "https://evil.example"})).status_code == 403
        assert (await visitor.client.post(target)).status_code == 303
        assert [each.number for each in await chat.notes()] == [2]
        assert (await visitor.client.get(target)).status_code == 405


async def test_a_paused_conversation_is_kept_and_told_so_in_the_browser_and_in_the_inspector(run_site):
    async with run_site("Fine.") as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("first")
            await events.until_answered()
        chat, now = await site.context(), site.storage.now()
        pause = Pause(now, now + timedelta(hours=1))
        await site.storage.write(lambda connection: set_pause(connection, chat.id, pause))
        async with visitor.events() as events:
            await events.until_idle()
            for text in ("is anybody there?", "hello?"):
                await visitor.say(text)
                await events.until("message", lambda data, text=text: text in str(data))
                await events.until("state", lambda data: not data["working"])
        said = [each.text for each in await chat.chat_history.messages()]
        assert said == ["first", "Fine.", "is anybody there?", "hello?"]
        page = words((await visitor.client.get(f"/inspect/{chat.id}", headers=PAGE)).text)
        assert "Paused since" in page
        assert "kept and not answered" in page
        await site.storage.write(lambda connection: set_pause(connection, chat.id, None))
        assert "Paused" not in words((await visitor.client.get(f"/inspect/{chat.id}", headers=PAGE)).text)


async def test_a_turn_that_failed_says_why(run_site):
    async with run_site([LLMError("the server is on fire", is_transient=False)]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("hello")
            await events.until("notice")
        listed = words((await visitor.client.get("/inspect/1")).text)
        assert "Failed, set aside" in listed
        assert "Tool failed" not in listed
        assert "the server is on fire" in (await visitor.client.get("/inspect/1/1")).text


async def test_a_turn_that_runs_can_be_looked_at(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        await visitor.say("hello")
        await typist.is_asked.wait()
        await visitor.say("and then?")
        assert "Running" in words((await visitor.client.get("/inspect/1/1")).text)
        waiting = (await visitor.client.get("/inspect/1/2")).text
        assert "Nothing was done for it yet." in words(waiting)
        assert "Turn 2" in words((await visitor.client.get("/inspect/1")).text)


async def test_long_lists_come_in_pages(site):
    visitor = await site.visitor()
    for number in range(60):
        context = await AgentContext.get_or_create(site.storage, {"transport": "telegram", "chat_id": str(number)})
        await context.chat_history.append_user_message(f"message of {number}")
    first = (await visitor.client.get("/inspect")).text
    assert "Telegram · chat_id=59" in words(first)
    assert "message of 59" in first
    assert "chat_id=9 " not in words(first)
    (older,) = re.findall(r'href="(/inspect\?after=[0-9-]+)"', first)
    second = (await visitor.client.get(older)).text
    assert "chat_id=9 " in words(second)
    assert "chat_id=59" not in words(second)
    assert re.findall(r"after=", second) == []
    for after in ("x", "-1", "9" * 20, "1-", "9" * 30 + "-1", "\u0663-\u0663", "0-0"):
        assert (await visitor.client.get("/inspect", params={"after": after})).status_code == 200


async def test_an_inspector_with_nothing_to_show_says_so(site):
    visitor = await site.visitor()
    assert "Nobody has said anything yet." in (await visitor.client.get("/inspect")).text
    await AgentContext.get_or_create(site.storage, {"chat": "1"})
    assert "No turn was made here." in (await visitor.client.get("/inspect/1")).text


async def test_what_is_not_there_is_said_so(site):
    visitor = await site.visitor()
    told = {
        "/inspect/7": "There is no such conversation",
        "/inspect/7/7": "There is no such turn",
        "/inspect/t/7": "There is no such turn",
        "/inspect/x": "There is nothing at this address",
        "/inspect/-1": "There is nothing at this address",
        f"/inspect/{'9' * 30}": "This is not there",
    }
    for path, reason in told.items():
        response = await visitor.client.get(path, headers=PAGE)
        assert response.status_code == 404, path
        assert reason in words(response.text)
        assert 'href="/inspect"' in response.text
        assert 'href="/"' in response.text


async def test_a_turn_is_found_in_its_own_conversation_alone(run_site):
    async with run_site() as site:
        for visitor in (await site.visitor(), await site.visitor()):
            async with visitor.events() as events:
                await visitor.say("hello")
                await events.until_answered()
        assert (await visitor.client.get("/inspect/1/1")).status_code == 200
        assert (await visitor.client.get("/inspect/1/2")).status_code == 404


async def test_a_secret_is_shown_on_no_page(run_site):
    secret = "sk-another-secret-value"
    register_secret(secret)
    async with run_site([f"your key is {secret}"]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say(f"remember {secret}")
            await events.until_answered()
        for path in ("/inspect", "/inspect/1", "/inspect/1/1"):
            page = (await visitor.client.get(path)).text
            assert secret not in page
            assert "[secret]" in page


def test_steps_of_any_shape_can_be_shown():
    began = datetime(2026, 1, 1, tzinfo=UTC)
    strange = ActionStep(3, timing=Timing(began), tool_calls=[ToolCall("1", "x", {}, "{broken"), "odd"], error="odd")
    strange.set_value("mood", {"a": [1]})
    strange.set_value("prompt_sections", {"found": "odd"})
    strange.set_value(
        "model_input_messages", [{"role": "user", "content": [{"type": "text", "text": "hi \u202e"}]}, {}]
    )
    blocks = show_steps([TaskStep("\x1b[31mred"), strange])
    assert blocks[0].parts[0].text == "\\x1b[31mred"
    labels = [part.label for part in blocks[1].parts]
    assert labels == ["What the model was given: 2 messages", "Call x", "No result yet", "Call", "Error", "mood"]
    assert blocks[1].parts[0].parts[0].parts[0].text == "hi \\u202e"


def test_secrets_among_the_arguments_of_calls_are_masked():
    arguments = {"name": "ann", "password": "correct horse battery"}
    said = {"role": "assistant", "content": None, "tool_calls": [{"id": "0", "arguments": arguments}]}
    step = ActionStep(1, model_input_messages=[said], tool_calls=[ToolCall("1", "log_in", arguments)])
    shown = repr(show_steps([step]))
    assert "ann" in shown
    assert "horse" not in shown


def test_what_was_found_is_unfolded_in_the_first_prompt():
    prompt = [
        {"role": "system", "content": "be kind"},
        {"role": "system", "content": "Rex"},
        {"role": "user", "content": "?"},
    ]
    sections = {"system": [0, 1], "found": [1, 2], "question": [2, 3]}
    steps = [
        ActionStep(
            number,
            timing=Timing(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, 0, 0, 2, tzinfo=UTC)),
            model_input_messages=prompt,
            tool_calls=[ToolCall("1", "x", {"a": 1})],
            tool_results=[ToolResult("1", "y" * 30_000, is_error=True, duration_seconds=1.5)],
            error=StepError("ValueError", "no"),
            token_usage=TokenUsage(1200, 30, 1000, 20),
            model="gpt-6.1-terra",
            finish_reason="tool_calls",
            model_items=[{"type": "reasoning", "encrypted_content": "sealed"}],
            prompt_sections=sections,
        )
        for number in (1, 2)
    ]
    first, second = show_steps(steps)
    counted = ["1,200 tokens in", "30 out", "1,000 cached", "20 thinking"]
    assert first.facts == ["2.00 s", *counted, "gpt-6.1-terra", "tool_calls"]
    assert "sealed" not in repr(first)
    assert (first.parts[0].is_open, second.parts[0].is_open) == (True, False)
    assert [(part.label, part.is_open) for part in first.parts[0].parts] == [
        ("Instructions", False),
        ("Found by searching", True),
        ("Question", False),
    ]
    assert first.parts[2].text.endswith("… 10,000 more characters")


def test_a_preview_has_the_words_of_an_answer_and_none_of_its_signs():
    answer = """# Weather

| city | temperature |
|---|--:|
| **Oslo** | 3 °C |
| Rome |  |

---

- bring a [coat](https://example.com)
- and `boots`

1. go

> soon"""
    told = "Weather city, temperature; Oslo, 3 °C; Rome bring a coat, and boots 1. go soon"
    assert show_preview(answer) == told
    assert show_preview("| a | b |\n|--") == "| a | b | |--"  # no table yet
    assert show_preview("2 * 3 * 4 = 24 and a_b_c") == "2 * 3 * 4 = 24 and a_b_c"
    assert show_preview("x\u202ey " * 400).endswith("…")
    assert "\u202e" not in show_preview("**x\u202ey**")


async def test_stopped_failed_and_answered_turns_are_told_apart_in_lists_and_on_their_pages(run_site, typist):
    async with run_site(llm=typist) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("hello")
            await typist.is_asked.wait()
            await visitor.post("/web/stop", {"id": "stop-number-1"})
            await events.until("stopped")
        for path in ("/inspect/1", "/inspect/1/1", "/inspect?view=turns"):
            page = (await visitor.client.get(path, headers=PAGE)).text
            assert '<span class="state stopped">Stopped</span>' in page, path


async def test_a_turn_whose_tool_failed_is_marked_in_lists_and_on_its_page(run_site):
    async with run_site([*SCRIPT, "Fine"], tools=[add]) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            for text in ("What is 2 + 3?", "thanks"):
                await visitor.say(text)
                await events.until_answered()
        marks = {
            path: (await visitor.client.get(path, headers=PAGE)).text.count("Tool failed")
            for path in ("/inspect/1", "/inspect?view=turns", "/inspect/1/1", "/inspect/1/2")
        }
    assert marks == {"/inspect/1": 1, "/inspect?view=turns": 1, "/inspect/1/1": 1, "/inspect/1/2": 0}


async def test_decided_approvals_are_listed_a_page_at_a_time_and_do_nothing(run_site, monkeypatch):
    @tool(needs_approval=True)
    async def pay(to: str, password: str) -> str:
        """Pay."""
        return f"paid {to} by {len(password)} letters"

    calls = [ToolCall("", "pay", {"to": f"{EVIL}{number}", "password": "correct horse"}) for number in (1, 2)]
    monkeypatch.setattr("transports.web.inspector_lists.PAGE", 1)
    async with run_site([calls, "paid"], tools=[pay]) as site:
        visitor = await site.visitor()
        assert "Nobody has decided" in words((await visitor.client.get("/inspect/approvals", headers=PAGE)).text)
        async with visitor.events() as events:
            await visitor.say("pay them", name=EVIL)
            for _ in calls:
                await events.until("notice", lambda data: data["buttons"])
            await visitor.say("/allow all", name=EVIL)
            await events.until("message", lambda data: data["text"] == "paid")
        page = (await visitor.client.get("/inspect/approvals", headers=PAGE)).text
        assert EVIL not in page
        assert "horse" not in page
        told = words(page.replace(html.escape(EVIL), ""))
        assert "2 pay" in told
        assert "worked" in told
        assert "1 pay" not in told
        older = html.unescape(re.search(r'href="([^"]*after[^"]*)"', page)[1])
        assert "1 pay" in words((await visitor.client.get(older, headers=PAGE)).text)
        for wrong in ("x", "-1", "9" * 40, "٣"):
            answer = await visitor.client.get("/inspect/approvals", params={"after": wrong}, headers=PAGE)
            assert answer.status_code == 200
