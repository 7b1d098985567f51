"""What the service says itself, in the language that a person's Slack is set to; English where it has no texts."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from standins.slack_api import SlackApi

from botservice import LLMError, ToolCall
from botservice.agent.remembering import remember
from botservice.texts import date_in_language, in_language
from transports.slack.answer_messages import as_typed
from transports.slack.interactions import ASK_CALLBACK

SPOKEN = [("ja-JP", "ja"), ("fr-FR", "fr"), ("sv-SE", "en")]


def speak(api: SlackApi, locale: str) -> None:
    """Have Alice's Slack be in a language."""
    api.world.users["U0ALICE"]["locale"] = locale


async def page_of_alice(api: SlackApi, ts: str) -> list[str]:
    """Return the texts of the page that Alice is shown when she looks at it."""
    api.world.views.pop("U0ALICE", None)
    api.send_event({"type": "app_home_opened", "user": "U0ALICE", "tab": "home", "event_ts": ts})
    view = await api.until(lambda: api.world.views.get("U0ALICE"))
    return [block["text"]["text"] for block in view["blocks"]]


@pytest.mark.parametrize(("locale", "told_in"), SPOKEN)
async def test_a_page_is_in_the_language_of_who_looks_at_it(
    api: SlackApi, bot_on: Any, locale: str, told_in: str
) -> None:
    def say(key: str, **values: object) -> str:
        return in_language(key, told_in, command="/botservice", **values)

    speak(api, locale)
    script = [ToolCall("1", "remember", {"topic": "drink", "text": "I like tea"}), "noted"]
    begin = [say("home.title"), say("home.welcome"), say("home.kept")]
    async with bot_on(api, script, tools=[remember]):
        assert await page_of_alice(api, "1.1") == [*begin, say("home.nothing")]
        ts = api.person_says("I like tea")
        await api.until(api.said)
        page = await page_of_alice(api, "2.2")
    since = datetime.fromtimestamp(float(ts), UTC)
    counted = {each: say(f"home.{each}", count=1) for each in ("messages", "conversations")}
    counts = say("home.counts", **counted, since=date_in_language(since, told_in))
    assert page == [*begin, counts, say("home.known"), "• I like tea\n", say("home.how")]


@pytest.mark.parametrize(("locale", "told_in"), SPOKEN)
async def test_an_apology_is_in_the_language_of_who_asked(
    api: SlackApi, bot_on: Any, locale: str, told_in: str
) -> None:
    speak(api, locale)
    async with bot_on(api, [LLMError("no such model", is_transient=False)]):
        api.person_says("hello")
        assert await api.until(api.said) == [as_typed(in_language("answer.apology", told_in, error_id="T1"))]


async def test_a_dialog_is_in_the_language_of_who_opens_it(api: SlackApi, bot_on: Any) -> None:
    speak(api, "de-DE")
    async with bot_on(api):
        api.interact(
            "message_action",
            callback_id=ASK_CALLBACK,
            message={"type": "message", "user": "U0BOB", "ts": "1700000000.000100", "text": "The launch is on 4 May"},
            channel={"id": "C0OTHER", "name": "other"},
            response_url=f"{api.base}/response/asked",
        )
        shown = json.dumps((await api.until(lambda: api.world.modals))[0], ensure_ascii=False)
    assert all(in_language(f"question.{name}", "de") in shown for name in ("title", "submit", "close", "label"))


async def test_the_line_of_an_app_that_is_no_agent_is_in_the_language_of_who_asked(
    api: SlackApi, bot_on: Any, typist: Any
) -> None:
    speak(api, "it-IT")
    api.world.is_agent = False
    async with bot_on(api, typist):
        api.person_says("hello")
        assert (await api.until(lambda: api.world.statuses))[0][2] == in_language("status.thinking", "it")
        typist.write("hi")
        typist.finish()
        await api.until(api.said)


async def test_the_buttons_for_an_opinion_are_named_in_the_language_of_who_asked(api: SlackApi, bot_on: Any) -> None:
    speak(api, "ru-RU")
    async with bot_on(api):
        api.person_says("hello")
        post = (await api.until(api.bot_posts))[0]
    shown = json.dumps(post.blocks, ensure_ascii=False)
    assert in_language("buttons.good", "ru") in shown
    assert in_language("buttons.bad", "ru") in shown


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("/help says more, so does (/memory).", "!help says more, so does (!memory)."),
        ("/allow 3\n/deny", "!allow 3\n!deny"),
        ("read /help/me, a/help and /helper, https://x.example/help", None),
    ],
)
def test_commands_are_named_as_they_are_typed_and_nothing_else_is_touched(text: str, typed: str | None) -> None:
    assert as_typed(text) == (typed or text)
