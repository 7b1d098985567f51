"""Sessions: their titles, their states, and the tools of an answer as a plan."""

import pytest
from standins.payments import Till, cashier
from standins.slack_api import BOT_USER, Refuse, SlackApi, limited

from botservice import Storage, Tool, ToolCall
from botservice.config.setting_choices import SlackPings
from botservice.core.messages import ToolCall as Call
from transports.common.growing_answer import Step
from transports.slack.context import Manners, SlackTempo
from transports.slack.sessions import title_from
from transports.slack.streams import TaskStyle

QUICK = SlackTempo(first_sign=0.0, first_text=0.0, append=0.01, edit=0.01)
RENAME = "agents.sessions.rename"


def begun(api: SlackApi) -> int:
    """Return how often it was said that the bot is at work."""
    return [status for *_, status in api.world.statuses].count("processing")


async def ask(api: SlackApi, typist, text: str = "What is the plan for May?", **where: str) -> str:
    """Ask, answer once the session is at work, and return the thread."""
    before, said = begun(api), len(api.said(where.get("channel", "D0ALICE")))
    ts = api.person_says(text, **where)
    await api.until(lambda: begun(api) > before)  # that an earlier one is at rest may be said only now
    typist.write("Here it is.")
    typist.finish()
    await api.until(lambda: len(api.said(where.get("channel", "D0ALICE"))) > said)
    return ts


async def test_a_session_is_called_by_the_first_words_of_its_question(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        text = f"<@{BOT_USER}> could you tell me &amp; Bob how the launch in May is going to be prepared by all of us?"
        ts = await ask(api, typist, text, channel="C0GENERAL")
        await api.until(lambda: api.world.titles)
        await ask(api, typist, "And in June?", channel="C0GENERAL", thread_ts=ts)
        await api.until(lambda: len(api.world.statuses) == 4)
    assert api.world.titles == {("C0GENERAL", ts): "could you tell me & Bob how the launch in May is going to…"}
    assert len(api.calls(RENAME)) == 1


async def test_an_answer_that_is_there_at_once_begins_no_session_and_names_none(api: SlackApi, bot_on) -> None:
    async with bot_on(api, manners=Manners(tempo=SlackTempo(first_sign=3600.0))) as bot:
        for count in (1, 2):  # when the second one is there, the first has been through everything
            api.person_says("What is the plan for May?")
            await api.until(lambda count=count: len(api.said()) == count)
        await bot.transport._slack.background.settle()
    assert api.calls(RENAME) == []


async def test_a_session_that_was_begun_is_named_with_an_answer_that_is_there_at_once(
    api: SlackApi, bot_on, typist
) -> None:
    async with bot_on(api, typist) as bot:
        order = api.order(limited(1), RENAME)
        ts = await ask(api, typist)
        await api.until(lambda: order.used)
        await bot.transport._slack.background.settle()
    async with bot_on(api, manners=Manners(tempo=SlackTempo(first_sign=3600.0))):
        api.person_says("And June?", thread_ts=ts)
        await api.until(lambda: api.world.titles)
    assert api.world.titles == {("D0ALICE", ts): "And June?"}


async def test_a_session_that_waited_for_a_decision_is_named_with_its_answer(api: SlackApi, bot_on) -> None:
    till = Till()
    async with bot_on(api, cashier(), tools=till.tools, manners=Manners(tempo=SlackTempo(first_sign=3600.0))):
        ts = api.person_says("pay her")
        await api.until(lambda: ("D0ALICE", ts, "suspended") in api.world.statuses)
        question = next(each for each in api.bot_posts() if each.blocks)
        row = next(block for block in question.blocks if block["type"] == "actions")
        api.press(question, row["elements"][0])
        await api.until(lambda: api.world.titles)
    assert api.world.titles == {("D0ALICE", ts): "pay her"}


async def test_a_title_that_a_person_gave_stays(api: SlackApi, bot_on_both, typist) -> None:
    async with bot_on_both(api, typist):
        order = api.order(limited(1), RENAME, times=None)
        ts = await ask(api, typist)
        await api.until(lambda: order.used)
        order.cancel()
        api.rename_session("D0ALICE", ts, "Launch")
        await api.all_taken()
        await ask(api, typist, "And June?", thread_ts=ts)
        await ask(api, typist, "Something else")
        await api.until(lambda: len(api.world.titles) == 2)
    assert api.world.titles["D0ALICE", ts] == "Launch"


async def test_a_title_that_could_not_be_given_comes_with_the_next_answer(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        order = api.order(limited(1), RENAME)
        ts = await ask(api, typist)
        await api.until(lambda: order.used)
        await ask(api, typist, "And June?", thread_ts=ts)
        await api.until(lambda: api.world.titles)
    assert api.world.titles == {("D0ALICE", ts): "And June?"}


@pytest.mark.parametrize("code", ["unknown_method", "missing_scope", "feature_not_enabled"])
async def test_a_workspace_without_titles_is_asked_once(
    api: SlackApi, bot_on, typist, code: str, sqlite_storage: Storage, caplog: pytest.LogCaptureFixture
) -> None:
    api.order(Refuse(code), RENAME, times=None)
    for number in range(2):
        async with bot_on(api, typist) as bot:
            await ask(api, typist)
            await api.until(lambda: api.calls(RENAME))
            await ask(api, typist)
            await bot.transport._slack.background.settle()
        assert len(api.calls(RENAME)) == 1, number
    assert [each.message for each in caplog.records].count("slack.without_feature") == 1


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("hello", "hello"),
        (f"<@{BOT_USER}>  ", ""),
        ("see <https://example.com|this page> in <#C1|general>", "see this page in #general"),
        ("x" * 70, "x" * 59 + "…"),
    ],
)
def test_a_title_is_what_people_read(text: str, title: str) -> None:
    assert title_from(text) == title


async def test_commands_of_the_service_give_no_title(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist) as bot:
        api.person_says("!help")
        await api.until(api.said)
        await bot.transport._slack.background.settle()
    assert api.calls(RENAME) == []


async def test_after_a_stream_the_session_is_at_rest(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        ts = api.person_says("go on")
        await api.until(lambda: api.world.statuses)
        typist.write("One more sentence of the answer. ")
        await api.until(lambda: [each for each in api.world.posts if each.is_streaming])
        typist.finish()
        await api.until(api.said)
        await api.until(lambda: len(api.world.statuses) == 2)
    assert api.world.statuses == [("D0ALICE", ts, "processing"), ("D0ALICE", ts, "active")]


async def look_up(word: str, page: str = "") -> str:
    """Look something up."""
    if word == "broken":
        raise ValueError("no such word")
    return "42"


CALLS = [
    Call("1", "look_up", {"word": "bot", "page": "https://example.com/bot"}),
    Call("2", "look_up", {"word": "broken"}),
]


async def test_several_tools_at_once_are_a_plan(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist, tools=[Tool(look_up)], manners=Manners(tempo=QUICK, previews=True)):
        api.person_says("what is it?")
        typist.write(CALLS)
        await api.until(lambda: [each for each in api.world.posts if each.is_streaming])
        typist.write("It is 42")
        typist.finish()
        await api.until(api.said)
    post = api.bot_posts()[0]
    assert (post.task_display_mode, post.plan) == ("plan", "2 steps")
    first, second = post.tasks.values()
    assert (first["title"], first["status"], first["details"]) == ("look up", "complete", "word: bot")
    assert first["sources"] == [{"type": "url", "url": "https://example.com/bot", "text": "https://example.com/bot"}]
    assert second["status"] == "error"


async def test_one_tool_is_no_plan(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist, tools=[Tool(look_up)]):
        api.person_says("what is it?")
        typist.write(CALLS[0])
        post = (await api.until(lambda: [each for each in api.world.posts if each.is_streaming]))[0]
        typist.write("It is 42")
        typist.finish()
        await api.until(api.said)
    assert (post.task_display_mode, post.plan) == ("timeline", None)
    assert "sources" not in next(iter(post.tasks.values())), "without previews Slack is given no address to fetch"


async def test_a_workspace_without_plans_shows_the_tools_one_by_one(api: SlackApi, bot_on, typist) -> None:
    api.world.without = {"task_display_mode"}
    async with bot_on(api, typist, tools=[Tool(look_up)]):
        for number in (1, 2):
            api.person_says("what is it?")
            typist.write([ToolCall(f"{number}{each.id}", each.name, each.arguments) for each in CALLS])
            await api.until(lambda: [each for each in api.world.posts if each.is_streaming])
            typist.write("It is 42")
            typist.finish()
            await api.until(lambda number=number: len(api.said()) == number)
    assert api.outcomes("chat.startStream") == ["invalid_arguments", "ok", "ok"]
    assert [len(post.tasks) for post in api.bot_posts()] == [2, 2]


def test_in_channels_nobody_reads_what_a_tool_is_called_with() -> None:
    (task,) = TaskStyle(SlackPings.NONE, has_details=False, has_sources=True).chunks([Step("t", CALLS[0])])
    assert not {"details", "sources"} & task.keys()


def test_details_ping_nobody_and_stay_short() -> None:
    call = Call("1", "t", {"a": "<!channel> " + "x" * 500, "b": True, "c": {"d": 1}, "n_of": 3})
    (task,) = TaskStyle(SlackPings.NONE, has_details=True).chunks([Step("t", call)])
    assert "<!" not in task["details"]
    assert len(task["details"]) < 200
    assert task["details"].split("\n")[1:] == ["n of: 3"]


@pytest.mark.parametrize("code", ["channel_not_found", "is_archived", "thread_not_found", "user_not_in_channel"])
async def test_a_place_without_a_session_leaves_those_of_others(api: SlackApi, bot_on, typist, code: str) -> None:
    async with bot_on(api, typist):
        order = api.order(Refuse(code), "agents.sessions.setStatus")
        api.person_says("one")
        await api.until(lambda: order.used)
        typist.write("Here it is.")
        typist.finish()
        await api.until(api.said)
        ts = api.person_says("two", channel="D0BOB", user="U0BOB")
        await api.until(lambda: ("D0BOB", ts, "processing") in api.world.statuses)
        typist.write("Here too.")
        typist.finish()
    assert api.calls("assistant.threads.setStatus") == []


async def test_a_channel_without_streams_leaves_those_of_others(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist, manners=Manners(tempo=QUICK)):
        api.order(Refuse("channel_type_not_supported"), "chat.startStream")
        for number, place in enumerate(({"channel": "C0GENERAL"}, {"channel": "D0BOB", "user": "U0BOB"}), start=1):
            api.person_says(f"<@{BOT_USER}> go on", **place)
            await api.until(lambda number=number: len(typist.prompts) == number)
            typist.write("One more sentence of the answer. ")
            await api.until(lambda number=number: len(api.calls("chat.startStream")) == number)
            typist.finish()
            await api.until(lambda place=place: api.said(place["channel"]))
