"""While the bot is at work, a person sees that it is, and what it will say; the answer comes whatever happens."""

import asyncio

import pytest
from sqlalchemy import select
from standins.slack_api import BOT_USER, Drop, Hang, LoseAnswer, Refuse, SlackApi, limited

from botservice import Storage, Tool, ToolCall, progress
from botservice.storage.tables.conversations import deliveries

SENTENCE = "Here is one more sentence of the answer. "


def growing(api: SlackApi) -> list:
    return [each for each in api.world.posts if each.is_streaming]


async def all_deliveries(storage: Storage) -> list[tuple[str, str]]:
    query = select(deliveries.c.kind, deliveries.c.status).order_by(deliveries.c.id)
    return await storage.read(lambda connection: [tuple(row) for row in connection.execute(query)])


async def test_an_answer_grows_and_stays_one_message(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        ts = api.person_says(f"<@{BOT_USER}> go on", channel="C0GENERAL")
        typist.write(SENTENCE)
        post = (await api.until(lambda: growing(api)))[0]
        typist.write(SENTENCE * 2)
        await api.until(lambda: post.shown == (SENTENCE * 3).rstrip())
        typist.write("The end.")
        typist.finish()
        await api.until(lambda: api.said("C0GENERAL"))
        start = api.calls("chat.startStream")[0]
    assert api.said("C0GENERAL") == [SENTENCE * 3 + "The end."]
    assert (post.thread_ts, start["recipient_user_id"], start["recipient_team_id"]) == (ts, "U0ALICE", "T0001")
    assert api.calls("chat.postMessage") == api.calls("chat.update") == []
    assert [block["type"] for block in post.blocks] == ["context_actions"]


async def test_tools_show_themselves_while_they_run(api: SlackApi, bot_on, typist) -> None:
    ready = asyncio.Event()

    async def look_up() -> str:
        """Look something up."""
        await ready.wait()
        return "42"

    async with bot_on(api, typist, tools=[Tool(look_up)]):
        api.person_says("what is it?")
        typist.write(ToolCall("1", "look_up"))
        post = (await api.until(lambda: growing(api)))[0]
        task = next(iter(post.tasks.values()))
        assert (task["title"], task["status"]) == ("look up", "in_progress")
        ready.set()
        typist.write("It is 42")
        typist.finish()
        await api.until(api.said)
    assert api.said() == ["It is 42"]
    assert next(iter(post.tasks.values()))["status"] == "complete"


async def test_what_tools_say_of_their_work_stands_beside_each_while_they_run(api: SlackApi, bot_on, typist) -> None:
    ready = asyncio.Event()

    async def look_up(word: str) -> str:
        """Look something up."""
        progress(f"{word}: page 3 of *10* <!channel>")
        await ready.wait()
        return "42"

    async with bot_on(api, typist, tools=[Tool(look_up)]):
        api.person_says("what is it?")
        typist.write([ToolCall(word, "look_up", {"word": word}) for word in ("bot", "cat")])
        said = [f"look up: {word}: page 3 of *10* @\u2060channel" for word in ("bot", "cat")]
        await api.until(
            lambda: growing(api) and sorted(each["title"] for each in growing(api)[0].tasks.values()) == said
        )
        post = growing(api)[0]
        ready.set()
        typist.write("It is 42")
        typist.finish()
        await api.until(api.said)
    assert api.said() == ["It is 42"]
    assert [(each["title"], each["status"]) for each in post.tasks.values()] == [("look up", "complete")] * 2


async def test_what_was_said_before_a_tool_ran_gives_way_to_the_answer(api: SlackApi, bot_on, typist) -> None:
    async def look_up() -> str:
        """Look something up."""
        return "42"

    async with bot_on(api, typist, tools=[Tool(look_up)]):
        api.person_says("what is it?")
        typist.write("Let me see. ")
        await api.until(lambda: growing(api))
        typist.write(ToolCall("1", "look_up"))
        typist.write("It is 42")
        await api.until(lambda: any("It is 42" in each.shown for each in growing(api)))
        typist.finish()
        await api.until(api.said)
    assert api.said() == ["It is 42"]
    assert api.bot_posts()[0].states[-2:] != api.bot_posts()[0].states[-1:]


async def test_a_status_is_shown_and_taken_back(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        ts = api.person_says("hello")
        await api.until(lambda: api.world.statuses)
        typist.write("hi")
        typist.finish()
        await api.until(lambda: len(api.world.statuses) == 2)
    assert api.world.statuses == [("D0ALICE", ts, "processing"), ("D0ALICE", ts, "active")]


async def test_an_app_that_is_no_agent_shows_a_line_instead(api: SlackApi, bot_on, typist) -> None:
    api.world.is_agent = False
    async with bot_on(api, typist):
        ts = api.person_says("hello")
        await api.until(lambda: api.world.statuses)
        typist.write("hi")
        typist.finish()
        await api.until(api.said)
    assert api.world.statuses == [("D0ALICE", ts, "is thinking…")]


async def test_a_stream_that_slack_has_ended_goes_on_without_losing_a_word(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        api.person_says("go on")
        typist.write(SENTENCE)
        post = (await api.until(lambda: growing(api)))[0]
        api.end_streams()
        typist.write(SENTENCE)
        await api.until(lambda: SENTENCE * 2 in post.shown + " ")
        typist.write("More. ")
        await api.until(lambda: "More." in post.shown)
        typist.write("The end.")
        typist.finish()
        await api.until(lambda: api.said() == [f"{SENTENCE * 2}More. The end."])
    assert len(api.bot_posts()) == 1


async def test_a_stream_that_ends_before_its_last_words_is_replaced(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        api.person_says("go on")
        typist.write(SENTENCE)
        await api.until(lambda: growing(api))
        api.end_streams()
        typist.write("The end.")
        typist.finish()
        await api.until(lambda: api.said() == [f"{SENTENCE}The end."])


@pytest.mark.parametrize("method", ["chat.appendStream", "chat.stopStream", "chat.update"])
async def test_a_lost_answer_to_a_stream_repeats_and_loses_nothing(api: SlackApi, bot_on, typist, method) -> None:
    async with bot_on(api, typist):
        api.order(LoseAnswer(), method)
        if method == "chat.update":
            api.order(Refuse("message_not_in_streaming_state"), "chat.stopStream")
        api.person_says("go on")
        typist.write(SENTENCE)
        await api.until(lambda: growing(api))
        typist.write(SENTENCE)
        if method == "chat.appendStream":
            await api.until(lambda: api.calls("chat.appendStream"))
        typist.write("The end.")
        typist.finish()
        await api.until(lambda: api.said() == [f"{SENTENCE * 2}The end."])
    assert len(api.bot_posts()) == 1


async def test_a_stream_whose_opening_was_lost_costs_one_duplicate_at_most(
    api: SlackApi, bot_on, typist, sqlite_storage: Storage
) -> None:
    async with bot_on(api, typist):
        api.order(LoseAnswer(), "chat.startStream")
        api.person_says("go on")
        typist.write(SENTENCE)
        await api.until(lambda: growing(api))
        typist.write("The end.")
        typist.finish()
        await api.until(api.said)
    assert api.said() == [f"{SENTENCE}The end."]
    assert len(growing(api)) == 1


@pytest.mark.parametrize("fault", [Refuse("unknown_method"), Refuse("channel_type_not_supported"), Drop(), limited(1)])
async def test_without_streams_the_answer_is_a_plain_message(api: SlackApi, bot_on, typist, fault) -> None:
    async with bot_on(api, typist):
        order = api.order(fault, "chat.startStream", times=None)
        api.person_says("go on")
        typist.write(SENTENCE)
        await api.until(lambda: order.used)
        typist.finish()
        await api.until(api.said)
    assert api.said() == [SENTENCE.rstrip()]
    assert len(api.calls("chat.postMessage")) == 1


async def test_an_answer_longer_than_a_message_streams_its_first_part(api: SlackApi, bot_on, typist) -> None:
    words = "\n\n".join(f"Paragraph {number}. {SENTENCE * 10}" for number in range(60))
    async with bot_on(api, typist):
        api.person_says("go on")
        typist.write(words[:100])
        await api.until(lambda: growing(api))
        for begin in range(100, len(words), 700):
            typist.write(words[begin : begin + 700])
        typist.finish()
        await api.until(lambda: any("Paragraph 59" in each for each in api.said()))
    assert " ".join(api.said()).split() == words.split()


async def test_a_half_written_ping_never_shows(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        api.person_says("go on")
        for piece in ("Hello <", "!chan", "nel> and ", "<@U0", "BOB> ok", " @he", "re."):
            typist.write(piece)
            await asyncio.to_thread(api.wait, lambda: True)
        await api.until(lambda: growing(api))
        typist.finish()
        await api.until(api.said)
    states = [state for post in api.bot_posts() for state in post.states]
    assert not any("<!" in state or "<@" in state or "@here" in state for state in states)
    assert api.said()[0].replace("\u2060", "") == "Hello @channel and @U0BOB ok @here."


async def test_an_answer_is_not_kept_back_by_a_call_that_hangs(api: SlackApi, bot_on, typist, monkeypatch) -> None:
    monkeypatch.setattr("transports.slack.live.SlackSurface.patience_seconds", 0.05)
    async with bot_on(api, typist):
        api.person_says("go on")
        typist.write(SENTENCE)
        await api.until(lambda: growing(api))
        order = api.order(Hang(), "chat.appendStream")
        typist.write(SENTENCE)
        await api.until(lambda: order.used)
        typist.finish()
        await api.until(api.said)
        order.release()
    assert api.said() == [(SENTENCE * 2).rstrip()]
