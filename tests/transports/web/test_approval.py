"""Tools that ask first, in the browser: what every open page is told, before a press, after it, and when it is late."""

import base64
from datetime import timedelta
from typing import Any

import pytest
from standins.payments import HOSTILE, Till, cashier

PAGE = {"Accept": "text/html"}
OVER = "That was already decided, or it has expired."


async def decide(visitor: Any, says: str, number: int = 1) -> dict[str, Any]:
    response = await visitor.post("/web/decide", {"id": f"decision-{number}", "text": says})
    assert response.status_code == 200, response.text
    return response.json()


async def answered(events: Any, text: str) -> None:
    """Return once an answer has come, before or after what was waited for last: one look at storage may bring both."""
    known = [each["text"] for each in events.messages if each["role"] == "assistant"]
    if not any(text in each for each in known):
        await events.until("message", lambda data: data["role"] == "assistant" and text in data["text"])


async def question_in(events: Any) -> dict[str, Any]:
    return (await events.until("notice", lambda data: data["buttons"])).data


def decides(notice: dict[str, Any]) -> dict[str, str]:
    return {each["text"]: each["decides"] for each in notice["buttons"]}


@pytest.mark.parametrize(("button", "paid", "says"), [("Allow", 1, "Allowed for"), ("Deny", 0, "Denied for")])
async def test_every_page_sees_the_question_and_then_what_was_decided(
    run_site, storage_url, button: str, paid: int, says: str
) -> None:
    till = Till()
    async with run_site(cashier(), tools=till.tools, storage_url=storage_url) as site:
        visitor = await site.visitor()
        async with visitor.events() as one, visitor.events() as other:
            await visitor.say("pay her")
            question = await question_in(one)
            assert "to: Anna\namount: 5" in question["text"]
            assert (question["asked"], question["is_trouble"]) == (None, False)
            assert [*decides(question)] == ["Allow", "Deny", "Always in this chat"]
            assert await question_in(other) == question
            await one.until_idle()
            await visitor.say("how are you?")
            await one.until("message", lambda data: data["text"] == "Read: how are you?")
            assert till.paid == []
            assert (await decide(visitor, decides(question)[button]))["is_taken"]
            for events in (one, other):
                decided = (await events.until("notice")).data
                assert decided["text"].startswith(says)
                assert (decided["place"], decided["at"], decided["buttons"]) == (question["id"], question["at"], [])
            answer = "paid 5 to Anna" if paid else "did not allow"
            await answered(one, answer)
        async with visitor.events() as again:
            await again.until_idle()
            assert [each["text"][: len(says)] for each in again.of("notice")] == [says]
            assert len(again.messages) == 4
    assert till.paid == [("Anna", 5)] * paid


async def test_pressed_twice_or_in_another_browser_it_counts_for_nothing(run_site) -> None:
    till = Till()
    async with run_site(cashier(), tools=till.tools) as site:
        visitor, stranger = await site.visitor(), await site.visitor()
        async with visitor.events() as events, stranger.events() as theirs:
            await visitor.say("pay her")
            await stranger.say("hello")
            await theirs.until_answered()
            says = decides(await question_in(events))
            refused = await decide(stranger, says["Allow"])
            assert (refused["is_taken"], "number" in refused["text"]) == (False, True)
            assert theirs.of("notice") == []
            assert till.paid == []
            assert (await decide(visitor, says["Allow"], 1))["is_taken"]
            assert await decide(visitor, says["Allow"], 2) == {"text": OVER, "is_taken": False}
            assert await decide(visitor, says["Deny"], 3) == {"text": OVER, "is_taken": False}
            await answered(events, "paid 5 to Anna")
    assert till.paid == [("Anna", 5)]


async def test_what_decides_nothing_is_refused(site) -> None:
    visitor = await site.visitor()
    for body, status in (
        ({"id": "decision-1", "text": "/help"}, 400),
        ({"id": "decision-1", "text": ""}, 400),
        ({"text": "/allow 1"}, 400),
        ({"id": "decision-1", "text": "/allow 1", "chat": "another"}, 409),
        ({"id": "decision-1", "text": "/allow " + "1 " * 10_000}, 413),
    ):
        assert (await visitor.post("/web/decide", body)).status_code == status, body


async def test_no_other_site_can_decide(site) -> None:
    visitor = await site.visitor()
    body = {"id": "decision-1", "text": "/allow 1"}
    assert (await visitor.post("/web/decide", body, Origin="https://evil.example")).status_code == 403
    as_form = await visitor.client.post("/web/decide", content=b"{}", headers={"Content-Type": "text/plain"})
    assert as_form.status_code == 415


async def test_after_its_time_the_question_says_that_it_is_over(run_site) -> None:
    till = Till()
    async with run_site(cashier(), tools=till.tools, approval_lasts=timedelta(seconds=0.3)) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("pay her")
            over = await events.until("notice", lambda data: data["text"].startswith("Expired for"))
            assert over.data["buttons"] == []
            await answered(events, "Read: ")
    assert till.paid == []


async def test_a_question_outlives_the_process_that_asked_it(run_site, sqlite_url) -> None:
    till = Till()
    async with run_site(cashier(), tools=till.tools) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("pay her")
            await question_in(events)
        cookies = dict(visitor.client.cookies)
    async with run_site(cashier(), tools=till.tools) as site:
        visitor = await site.visitor(is_open=False, cookies=cookies)
        async with visitor.events() as events:
            question = await question_in(events)
            assert (await decide(visitor, decides(question)["Allow"]))["is_taken"]
            await events.until("notice", lambda data: data["text"].startswith("Allowed for"))
            await answered(events, "paid 5 to Anna")
    assert till.paid == [("Anna", 5)]


async def test_the_inspector_lists_what_waits_and_what_is_asked(run_site) -> None:
    till = Till()
    call = {"to": "<b>Anna</b>", "amount": 5, "note": "x"}
    async with run_site(cashier(call), tools=till.tools) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("pay her")
            question = await question_in(events)
            listed = (await visitor.client.get("/inspect", headers=PAGE)).text
            assert '<a href="/inspect/1/1">pay</a>' in listed
            assert "Awaiting approval" in listed
            turn = (await visitor.client.get("/inspect/1/1", headers=PAGE)).text
            assert "to: &lt;b&gt;Anna&lt;/b&gt;\namount: 5" in turn
            await decide(visitor, decides(question)["Deny"])
            await answered(events, "Read: ")
            assert "Waiting" not in (await visitor.client.get("/inspect", headers=PAGE)).text
            assert "Denied" in (await visitor.client.get("/inspect/1/1", headers=PAGE)).text


async def test_a_call_that_was_denied_is_nowhere_taken_for_one_that_failed(run_site, storage_url) -> None:
    async with run_site(cashier(), tools=Till().tools, storage_url=storage_url) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("pay her")
            await decide(visitor, decides(await question_in(events))["Deny"])
            answer = await events.until("message", lambda data: data["role"] == "assistant")
            assert [(call["name"], call["state"], call.get("result")) for call in answer.data["calls"]] == [
                ("pay", "denied", None)
            ]
            await visitor.say("/why")
            why = await events.until("notice", lambda data: data["asked"] == "/why")
            assert "pay: not allowed" in why.data["text"]
        for path in ("/inspect/1", "/inspect?view=turns", "/inspect/1/1"):
            page = (await visitor.client.get(path, headers=PAGE)).text
            assert "Tool failed" not in page, path
            assert 'class="failed"' not in page, path
        assert "Not made" in page


async def test_arguments_are_shown_as_they_are(run_site) -> None:
    till = Till()
    async with run_site(cashier({"to": HOSTILE, "amount": 5, "note": "n" * 50_000}), tools=till.tools) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("pay her")
            html = "".join((await question_in(events))["blocks"])
    assert "&lt;b&gt;bold&lt;/b&gt; *star* `tick` ```fence``` [x](https://x.org)" in html
    assert "\\u202eevil\\u202c &amp; \\" in html
    assert "<a " not in html
    assert len(html) < 6000


@pytest.mark.parametrize("has_file", [False, True])
async def test_always_covers_typed_words_and_no_file(run_site, has_file: bool) -> None:
    till = Till()
    async with run_site(cashier(), tools=till.tools) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("pay her")
            question = await question_in(events)
            assert (await decide(visitor, decides(question)["Always in this chat"]))["is_taken"]
            await answered(events, "paid 5 to Anna")
            await events.until_idle()
            bill = {"name": "bill.txt", "mime_type": "text/plain", "data": base64.b64encode(b"pay me 900").decode()}
            posted = await visitor.say("pay again", files=[bill] if has_file else [])
            assert posted.status_code == 202
            if has_file:
                asked = await events.until("notice", lambda data: data["buttons"] and data["id"] != question["id"])
                assert "amount: 5" in asked.data["text"]
            else:
                await events.until("message", lambda data: data["role"] == "assistant")
    assert len(till.paid) == (1 if has_file else 2)
