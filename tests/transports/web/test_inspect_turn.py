"""The page of a turn: its timeline, its prompts piece by piece, its requests, and what can be done about it."""

import html
import json
import re
import shlex
import subprocess
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from sqlalchemy import insert, select
from standins.tools import add

from botservice import AgentContext, LLMError, TokenUsage, ToolCall
from botservice.agent.shared_refusals import SharedRefusals
from botservice.conversation.steps import ActionStep
from botservice.core.policies import parse_prices
from botservice.llm.chat import ChatResponse
from botservice.llm.server_limits import ServerLimits, Wire
from botservice.people.budgets import Budgets
from botservice.storage.tables.conversations import contexts, events, turn_figures, turns
from botservice.storage.tables.services import feedback
from botservice.telemetry.logs import register_secret
from botservice.turns.listening_queries import GateDecision, begin_decision, set_decision
from transports.web.inspector_prompt import PromptPainter
from transports.web.inspector_site import show_seconds
from transports.web.inspector_turn import write_curl

PAGE = {"Accept": "text/html"}


CALL = ToolCall("", "add", {"a": 2, "b": 3})


def words(page):
    """Return what a person reads."""
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", page)))


async def said(site, *texts):
    visitor = await site.visitor()
    async with visitor.events() as heard:
        for text in texts:
            await visitor.say(text, name="Ann")
            while not is_answer(await heard.next()):
                pass
            await heard.until_idle()
    return visitor


def is_answer(event):
    """Return whether a turn is over with an event: an answer came, or a word about why there is none."""
    return event.name == "notice" or (event.name == "message" and event.data["role"] == "assistant")


async def read(visitor, path):
    answer = await visitor.client.get(path, headers=PAGE, follow_redirects=True)
    assert answer.status_code == 200
    return answer.text


async def test_a_turns_first_step_is_the_first_whatever_came_before(run_site):
    async with run_site(["Hello", CALL, "It is 5"], tools=[add]) as site:
        page = words(await read(await said(site, "hello", "2 + 3?"), "/inspect/1/2"))
    assert "Step 1 " in page
    assert "Step 2" not in page


async def test_a_timeline_leads_from_accepting_to_delivering(run_site):
    async with run_site([CALL, "It is 5"], tools=[add]) as site:
        page = await read(await said(site, "2 + 3?"), "/inspect/1/1")
    told = words(page)
    places = [told.index(each) for each in ("In the queue", "Step 1 ", "Answer ", "Storing and delivery")]
    assert places == sorted(places)
    assert len(re.findall(r'<rect class="k-[a-z]+" x="\d+" width="\d+"', page)) >= 6


async def test_a_failed_turn_shows_its_prompt_and_every_attempt(run_site):
    script = [LLMError("overloaded", retry_after_seconds=0), LLMError("no such key", is_transient=False)]
    async with run_site(script, tools=[add]) as site:
        page = words(await read(await said(site, "what is 2 + 3?"), "/inspect/1/1"))
    told = ("Attempt 1 of the model failed", "LLMError: overloaded", "Model, attempt 2", "What the model was given")
    for piece in told:
        assert piece in page, piece
    assert "Offered tools: 1" in page
    assert "Try again now" in page


async def test_pieces_of_a_prompt_have_their_tokens_and_their_share_of_the_money(run_site):
    usage = TokenUsage(1_000, 10, 0)
    async with run_site([lambda _: ChatResponse("Fine", usage=usage, model="m")], tools=[add]) as site:
        service = site.transport._site.service
        service.options = replace(service.options, budgets=Budgets(prices=parse_prices("*=1000/1000")))
        page = await read(await said(site, "hello"), "/inspect/1/1")
    rows = re.findall(r'<th scope="row"><svg class="key".*?</tr>', page, re.DOTALL)
    told = {row[0]: row for row in (words(each).split() for each in rows)}
    assert {"Instructions", "Question", "Tools,"} <= set(told)
    tokens = [int(row[-3].replace(",", "")) for row in told.values()]
    money = [float(row[-2]) for row in told.values()]
    assert sum(tokens) == 1_000
    assert abs(sum(money) - 1.0) < 0.001


async def test_what_is_new_in_a_prompt_is_told_from_what_stood_there_before(run_site):
    async with run_site(["One", "Two"]) as site:
        page = words(await read(await said(site, "first thing", "second thing"), "/inspect/1/2"))
    changes = page[page.index("Against the prompt before") :]
    assert "the first 2 messages are the same" in changes
    assert "New: user second thing" in changes


async def test_what_was_found_says_by_what_and_how_much_it_has_of_what_was_asked_for(run_site):
    async with run_site() as site:
        site.transport._site.service.agent.search_k = 1
        visitor = await said(site, "my lucky number is seven", "/new", "good morning", "what is my lucky number?")
        page = words(await read(visitor, "/inspect/1/4"))
    assert "Found by words alone: 1, best first; the best has 97 % of what is asked for" in page


async def test_a_command_is_called_one_and_shows_what_was_sent(run_site):
    async with run_site() as site:
        visitor = await said(site, "hello", "/help")
        page = words(await read(visitor, "/inspect/t/2"))
        assert "Command 2" in page
        assert "/forget" in page
        assert "Turn 2" not in words((await read(visitor, "/inspect?view=turns")).partition("<tbody>")[2])
        listed = words((await read(visitor, "/inspect?view=turns&state=commands")).partition("<tbody>")[2])
        assert "Command Just write to me." in listed  # which one it was, its answer says
        charts = await read(visitor, "/inspect/charts?range=day")
        assert charts.count("Nothing in this time") == len(("cost", "errors", "good", "bad"))


async def test_a_turn_has_an_address_of_its_own_that_leads_to_it(run_site):
    async with run_site() as site:
        visitor = await said(site, "hello")
        answer = await visitor.client.get("/inspect/t/1")
        assert (answer.status_code, answer.headers["location"]) == (303, "/inspect/1/1")
        for path in ("/inspect/t/2", f"/inspect/t/{'9' * 30}"):
            assert (await visitor.client.get(path)).status_code == 404


async def test_what_people_think_of_an_answer_is_shown(run_site):
    async with run_site() as site:
        visitor = await said(site, "hello")
        row = {"turn_id": 1, "platform": "slack", "person_id": "1", "created_at": datetime(2026, 1, 1, tzinfo=UTC)}
        await site.storage.write(lambda c: c.execute(insert(feedback).values(**row, verdict="bad")))
        for path in ("/inspect/1/1", "/inspect/1", "/inspect?view=turns&rating=bad"):
            assert "rated bad by 1" in words(await read(visitor, path)), path
        assert "No turn fits" in words(await read(visitor, "/inspect?view=turns&rating=good"))


def sent_by_a_shell(command: str) -> Any:
    """Return the body that a command sends where curl prints what it is given."""
    given = f"curl() {{ cat; }}\n{command}"
    return json.loads(subprocess.run(["sh"], input=given, capture_output=True, text=True, check=True).stdout)


def test_a_request_longer_than_an_argument_may_be_is_sent_by_hand_word_for_word():
    said = "it's\nEND\n$(echo) `echo` $HOME \\ \\\\u0021 !! 가\0" * 10_000
    body = {"messages": [{"role": "user", "content": said}]}
    command = write_curl({"url": "https://api.example/v1", "body": body})
    assert sent_by_a_shell(command) == body
    assert "!" not in command


async def test_a_request_can_be_sent_again_by_hand_and_has_no_key(run_site):
    secret = "sk-a-key-that-nobody-may-see"
    register_secret(secret)
    async with run_site([CALL, "It is 5"], tools=[add]) as site:
        visitor = await said(site, f"it's {secret}")
        body = json.loads((await visitor.client.get("/inspect/1/1/steps/1/json")).text)
        assert body["messages"][-1] == {"role": "user", "content": "it's [secret]"}
        assert [each["function"]["name"] for each in body["tools"]] == ["add"]
        curl = await visitor.client.get("/inspect/1/1/steps/1/curl")
        assert curl.headers["content-type"].startswith("text/plain")
        parts = shlex.split(curl.text)
        assert parts[0] == "curl"
        assert "Authorization: Bearer $OPENAI_API_KEY" in parts
        assert sent_by_a_shell(curl.text) == body
        assert secret not in curl.text
        for path in ("0/json", "9/json", "1/xml"):  # a question has no prompt
            assert (await visitor.client.get(f"/inspect/1/1/steps/{path}")).status_code == 404


async def test_a_page_that_has_not_changed_is_not_sent_again(run_site):
    async with run_site() as site:
        visitor = await said(site, "hello")
        for path in ("/inspect", "/inspect?view=turns", "/inspect/1", "/inspect/1/1", "/inspect/charts"):
            tag = (await visitor.client.get(path)).headers["etag"]
            assert (await visitor.client.get(path, headers={"If-None-Match": tag})).status_code == 304, path
        tag = (await visitor.client.get("/inspect/1")).headers["etag"]
        async with visitor.events() as heard:
            await visitor.say("more")
            await heard.until_answered()
        assert (await visitor.client.get("/inspect/1", headers={"If-None-Match": tag})).status_code == 200


async def test_a_failed_turn_is_tried_again_by_a_button(run_site):
    async with run_site([LLMError("no", is_transient=False), "Now it works"]) as site:
        visitor = await said(site, "hello")
        target = "/inspect/t/1/retry"
        assert (await visitor.client.post(target, headers={"Origin": "https://evil.example"})).status_code == 403
        assert (await visitor.client.get(target)).status_code == 405
        async with visitor.events() as heard:
            answer = await visitor.client.post(target)
            assert (answer.status_code, answer.headers["location"]) == (303, "/inspect/t/1")
            await heard.until("message", lambda data: data["text"] == "Now it works")
        assert (await visitor.client.post(target)).status_code == 409
        assert (await visitor.client.post("/inspect/t/99/retry")).status_code == 404


async def test_a_turn_is_dropped_by_whoever_says_that_they_mean_it(run_site):
    async with run_site([LLMError("no", is_transient=False)]) as site:
        visitor = await said(site, "hello")
        target, yes = "/inspect/t/1/drop", {"confirm": "yes"}
        assert (await visitor.client.post(target)).status_code == 400
        foreign = {"Origin": "https://evil.example"}
        assert (await visitor.client.post(target, data=yes, headers=foreign)).status_code == 403
        assert (await visitor.client.post(target, data=yes)).status_code == 303
        status = await site.storage.read(lambda c: c.execute(select(turns.c.status)).scalar_one())
        assert status == "done"


async def test_a_conversation_is_exported_and_deleted(run_site):
    secret = "sk-a-key-in-an-export"
    register_secret(secret)
    async with run_site() as site:
        visitor = await said(site, f"remember {secret}")
        answer = await visitor.client.get("/inspect/1/export")
        assert 'filename="conversation-1.json"' in answer.headers["content-disposition"]
        assert secret not in answer.text
        assert answer.json()["messages"][0]["text"] == "remember [secret]"
        target = "/inspect/1/delete"
        assert (await visitor.client.post(target)).status_code == 400
        assert (await visitor.client.get(target)).status_code == 405
        foreign = {"Origin": "https://evil.example"}
        assert (await visitor.client.post(target, data={"confirm": "yes"}, headers=foreign)).status_code == 403
        assert (await visitor.client.post(target, data={"confirm": "yes"})).status_code == 303
        assert (await visitor.client.get("/inspect/1")).status_code == 404
        assert (await visitor.client.get("/inspect/1/export")).status_code == 404


async def test_turns_are_found_from_the_form(run_site):
    async with run_site([CALL, "It is 5", "Rex"], tools=[add]) as site:
        visitor = await said(site, "What is 2 + 3?", "What is my dog called?")
        for query, expected in (
            ("text=dog", ["What is my dog called?"]),
            ("tool=add", ["What is 2 + 3?"]),
            ("person=ann", ["What is my dog called?", "What is 2 + 3?"]),
            ("person=nobody", []),
            ("platform=web&since=2020-01-01", ["What is my dog called?", "What is 2 + 3?"]),
            ("until=2020-01-01", []),
            ("since=2999W01T12", ["What is my dog called?", "What is 2 + 3?"]),  # no day: a week and an hour
            ("order=slowest&state=nonsense&rating=x&since=yesterday", None),
        ):
            page = await read(visitor, f"/inspect?view=turns&{query}")
            shown = re.findall(r'<a href="/inspect/1/\d" dir="auto">(.*?)</a>', page)
            assert expected is None or [html.unescape(each) for each in shown] == expected, query


async def test_the_average_of_equal_times_is_that_time(run_site):
    async with run_site(["One", "Two", "Three"]) as site:
        visitor = await said(site, "1", "2", "3")
        await site.storage.write(lambda c: c.execute(turn_figures.update().values(first_token_ms=1_025)))
        page = words(await read(visitor, "/inspect/charts"))
        assert f" {show_seconds(1.025)} " in page.partition("Time to the first token")[2].partition("Cost")[0]


async def test_what_models_refuse_stands_below_the_charts(run_site):
    async with run_site() as site:
        visitor = await said(site, "hello")
        assert "What models do not take" not in await read(visitor, "/inspect/charts")
        limits = ServerLimits(Wire.CHAT, is_wire_fixed=True, base_url="http://127.0.0.1/v1", model="<b>m</b>")
        limits.refuse({"image/webp": "400 unsupported image"})
        await SharedRefusals(SimpleNamespace(llms=[SimpleNamespace(limits=limits)])).store(site.storage)
        page = await read(visitor, "/inspect/charts")
        assert "<b>m</b>" not in page
        told = words(page).partition("What models do not take")[2]
        assert "<b>m</b> http://127.0.0.1/v1 image/webp 400 unsupported image" in told


async def test_the_owners_new_pages_need_the_owners_token(run_site):
    async with run_site(host="0.0.0.0", admin_token="a token of the owner") as site:
        visitor = await site.visitor(is_open=False)
        for path in ("/inspect/charts", "/inspect/t/1", "/inspect/1/export", "/inspect/1/1/steps/1/json"):
            assert (await visitor.client.get(path)).status_code == 401
        for path in ("/inspect/1/delete", "/inspect/t/1/retry", "/inspect/t/1/drop"):
            assert (await visitor.client.post(path, data={"confirm": "yes"})).status_code == 401


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }} ${7*7}",
    "a\u202eb\u2066c\u200f",
    "\x1b[31m\x07\x08\x9b",
    "x" * 30_000,
    "line\u2028break\u0085and\r\n\tmore",
    "\ud800 half",
    "javascript:alert(1)",
    "'; DROP TABLE turns; --",
]


async def test_nothing_that_anybody_writes_does_anything_on_any_page(run_site):
    async with run_site([f"answer {each}" for each in HOSTILE]) as site:
        visitor = await site.visitor()
        for number, text in enumerate(HOSTILE):
            keys = {"transport": f"t{number}", "chat_id": text[:2_000], text[:50]: "key"}
            context = await AgentContext.get_or_create(site.storage, keys)
            service = site.transport._site.service
            await service.prompt(context, text, author=text[:200])
        forged = {"error": HOSTILE[3] + HOSTILE[1], "status": "set_aside", "outcome": "failed"}
        await site.storage.write(lambda c: c.execute(turns.update().where(turns.c.id == 2).values(**forged)))
        paths = ["/inspect", "/inspect?view=turns&state=all", "/inspect/charts", "/inspect/charts?by=platform"]
        ids = await site.storage.read(lambda c: c.execute(select(turns.c.context_id, turns.c.id)).all())
        paths += [f"/inspect/{context_id}" for context_id, _ in ids] + [f"/inspect/{one}/{two}" for one, two in ids]
        for path in paths:
            page = await read(visitor, path)
            for bad in ("<script>alert", "<img", "\u202e", "\u2066", "\u200f", "\x1b", "\x07", "\x9b", "\u2028"):
                assert bad not in page, (path, bad)
            assert "49" not in re.findall(r"\{\{ 7.*?\}\}|>49 ", page)
            assert len(page) < 400_000


@pytest.mark.slow
async def test_nothing_that_is_looked_for_does_anything(run_site):
    async with run_site() as site:
        visitor = await said(site, "hello")
        names = ("text", "person", "model", "tool", "platform", "after", "since", "order", "range", "by")
        asked = [("/inspect", (name,)) for name in names]  # whoever takes but a few of them is asked for all at once
        asked += [(path, given) for path in ("/inspect/1", "/inspect/charts") for given in (("range",), ("by",), names)]
        for text in [*HOSTILE[:7], HOSTILE[8], HOSTILE[9], "\0", "%", "_"]:
            for path, given in asked:
                said_here = dict.fromkeys(given, text[: 30_000 // len(given)])
                answer = await visitor.client.get(path, params={"view": "turns", **said_here})
                assert answer.status_code == 200, (path, given, text)
                assert "<script>alert" not in answer.text
                assert "<img" not in answer.text
        assert await site.storage.read(lambda c: len(c.execute(select(contexts)).all()))
        assert await site.storage.read(lambda c: len(c.execute(select(events)).all()))


async def test_the_page_says_what_was_decided_where_nobody_had_addressed_the_bot(run_site):
    async with run_site("Fine.") as site:
        visitor, now = await said(site, "hello"), site.storage.now()
        await site.storage.write(lambda connection: begin_decision(connection, 1, "web:x", now, per_hour=3))
        assert "Unasked" not in words(await read(visitor, "/inspect/1/1"))
        shown = set()
        for each in GateDecision:
            await site.storage.write(lambda connection, each=each: set_decision(connection, 1, each, now))
            shown.add(words(await read(visitor, "/inspect/1/1")).partition("Unasked ")[2].partition(" Model ")[0])
        assert "" not in shown
        assert len(shown) == len(GateDecision)


def test_a_prompt_names_the_tools_that_a_role_withheld():
    step = ActionStep(1)
    step.set_values_from_dict(
        {
            "model_input_messages": [{"role": "user", "content": "deploy"}],
            "prompt_facts": {"tools": ["add"], "withheld": {"deploy": ["deployer", "owner"]}},
        }
    )
    shown = PromptPainter(Budgets()).paint(step, None)
    assert shown.left_out == ["the tool deploy: nobody without the role deployer or owner has it"]
