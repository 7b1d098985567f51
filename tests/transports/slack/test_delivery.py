"""Answers go out: each message once as far as Slack can be asked, in order, in the form that it takes."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from sqlalchemy import select
from standins.clocks import fast_clock
from standins.slack_api import BOT_USER, Drop, LoseAnswer, Refuse, SlackApi, limited
from standins.slack_api.mrkdwn import read_mrkdwn

from botservice import Attachment, Storage, Tool, ToolCall
from botservice.config.setting_choices import SlackPings
from botservice.core.messages import Message, Role
from botservice.core.states import DeliveryKind
from botservice.storage.tables.conversations import deliveries
from botservice.turns.turn import Delivery
from transports.slack.context import Manners

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


async def statuses(storage: Storage) -> list[tuple[str, int]]:
    """Return how deliveries stand once none is open."""
    query = select(deliveries.c.status, deliveries.c.attempts).order_by(deliveries.c.id)
    async with asyncio.timeout(60):
        while True:
            found = await storage.read(lambda connection: [tuple(row) for row in connection.execute(query)])
            if found and all(status in ("delivered", "failed") for status, _ in found):
                return found
            await asyncio.sleep(0)


async def test_an_answer_in_which_nothing_can_be_seen_is_asked_for_again(api: SlackApi, bot_on) -> None:
    async with bot_on(api, ["\u200b", "\u2800\ufeff", "here"], clock=fast_clock()):
        api.person_says("hello")
        await api.until(api.said)
    assert api.said() == ["here"]


async def test_a_long_answer_comes_in_parts_in_order(api: SlackApi, bot_on) -> None:
    answer = "\n\n".join(f"Paragraph {n}. " + "Some words follow. " * 30 for n in range(60))
    async with bot_on(api, [answer]):
        api.person_says("go on")
        await api.until(lambda: any("Paragraph 59" in text for text in api.said()))
    assert " ".join(api.said()).split() == answer.split()
    assert len(api.said()) > 2
    assert all(len(text) <= 12_000 for text in api.said())


@pytest.mark.parametrize("fault", [Drop(), Refuse("internal_error"), Refuse("", 502), limited(1), LoseAnswer()])
async def test_a_message_arrives_once_whatever_becomes_of_its_answer(api: SlackApi, bot_on, fault) -> None:
    async with bot_on(api, clock=fast_clock()):
        api.order(fault, "chat.postMessage")
        api.person_says("hello")
        await api.until(api.said)
        api.person_says("and now?")
        await api.until(lambda: len(api.said()) >= 2)
    assert api.said() == ["You said: hello", "You said: and now?"]


async def test_a_lost_answer_has_the_thread_asked_as_often_as_slack_allows(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api, clock=fast_clock()):
        api.order(LoseAnswer(), "chat.postMessage")
        asking = api.order(limited(1), "conversations.replies", times=2)
        api.person_says("hello")
        assert await statuses(sqlite_storage) == [("delivered", 4)]
    assert asking.used == 2
    assert len(api.calls("chat.postMessage")) == 1
    assert api.said() == ["You said: hello"]


async def test_what_was_refused_is_sent_again_without_asking(api: SlackApi, bot_on) -> None:
    async with bot_on(api, clock=fast_clock()):
        api.order(limited(1), "chat.postMessage")
        api.person_says("hello")
        await api.until(api.said)
    assert api.calls("conversations.replies") == []
    assert api.outcomes("chat.postMessage") == ["ratelimited", "ok"]


async def test_a_bot_that_may_not_read_a_thread_sends_all_the_same(api: SlackApi, bot_on) -> None:
    async with bot_on(api, clock=fast_clock()):
        api.order(Drop(), "chat.postMessage")
        api.order(Refuse("missing_scope"), "conversations.replies")
        api.person_says("hello")
        await api.until(api.said)
    assert api.said() == ["You said: hello"]


@pytest.mark.parametrize("reason", ["channel_not_found", "is_archived", "account_inactive", "not_in_channel"])
async def test_a_channel_that_is_gone_is_given_up(api: SlackApi, bot_on, sqlite_storage: Storage, reason: str) -> None:
    async with bot_on(api):
        api.order(Refuse(reason), "chat.postMessage", times=None)
        api.person_says("hello")
        assert await statuses(sqlite_storage) == [("failed", 1)]


async def test_blocks_that_are_refused_leave_the_text(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        api.order(Refuse("invalid_blocks"), "chat.postMessage", times=None, when=lambda params: "blocks" in params)
        api.person_says("hello")
        await api.until(api.said)
    assert api.said() == ["You said: hello"]


SIGNS = "Use <b> for bold, F = *a*b* & `c`; ~3~ > 2:\n> a _quote_ &amp; a <@U0BOB>"


async def test_where_neither_blocks_nor_markdown_are_taken_no_sign_of_an_answer_disappears(
    api: SlackApi, bot_on
) -> None:
    async with bot_on(api, [SIGNS], manners=Manners(pings=SlackPings.USERS)):
        for form in ("blocks", "markdown_text"):
            api.order(
                Refuse("invalid_blocks"), "chat.postMessage", times=None, when=lambda sent, form=form: form in sent
            )
        api.person_says("hello")
        await api.until(api.said)
    assert api.said() == [SIGNS.replace("<@U0BOB>", "@U0BOB")]
    assert "<@U0BOB>" in api.bot_posts()[0].text, "it is a mention that the model may make"


async def test_an_answer_that_grew_is_posted_anew_where_its_message_takes_no_blocks(
    api: SlackApi, bot_on, typist
) -> None:
    async with bot_on(api, typist):
        for method in ("chat.postMessage", "chat.update"):
            api.order(
                Refuse("invalid_blocks"),
                method,
                times=None,
                when=lambda sent: sent.keys() & {"blocks", "markdown_text"},
            )
        api.person_says("hello")
        typist.write("Let me see. ")
        await api.until(lambda: [each for each in api.world.posts if each.is_streaming])
        api.end_streams()
        typist.write(SIGNS)
        typist.finish()
        await api.until(api.said)
    assert api.said() == ["Let me see. " + SIGNS.replace("<@U0BOB>", "@\u2060U0BOB")]


async def test_signs_that_are_no_marks_are_seen_as_they_were_written(api: SlackApi, bot_on) -> None:
    literal = (
        "5$/month or 50$/year, $AAPL/$MSFT and ^foo$|^bar$",
        "Use <b> for bold, <i> for italics and <div> for a block",
        "F = m*a*t, price*qty*tax, 2**n and snake_case_name",
        "1986. That was the year.",
    )
    answer = "\n\n".join(literal)
    async with bot_on(api, [answer]):
        api.person_says("hello")
        await api.until(api.said)
    assert api.said() == [answer]


async def test_notifications_show_every_sign_of_an_answer(api: SlackApi, bot_on) -> None:
    async with bot_on(api, [SIGNS]):
        api.person_says("hello")
        post = (await api.until(api.bot_posts))[0]
    assert post.blocks
    assert read_mrkdwn(post.text, has_marks=False) == SIGNS.replace("<@U0BOB>", "@\u2060U0BOB")


async def test_nobody_is_pinged_by_a_model(api: SlackApi, bot_on) -> None:
    answer = "Hey <!channel> <!here|here> <@U0BOB> <!subteam^S1|@team> @everyone, a < b, mail a@here.com"
    async with bot_on(api, [answer]):
        api.person_says(f"<@{BOT_USER}> greet", channel="C0GENERAL")
        await api.until(lambda: api.said("C0GENERAL"))
    said = api.said("C0GENERAL")[0]
    assert "<!" not in said
    assert "<@" not in said
    assert "@everyone" not in said
    assert said.replace("\u2060", "") == (
        "Hey @channel @here (here) @U0BOB @subteam (@team) @everyone, a < b, mail a@here.com"
    )


async def test_links_are_not_unfurled(api: SlackApi, bot_on) -> None:
    async with bot_on(api, ["see https://example.com"]):
        api.person_says("a link")
        await api.until(api.said)
    assert not api.bot_posts()[0].unfurl


async def test_files_go_out_after_the_words(api: SlackApi, bot_on) -> None:
    async def draw() -> list[str | Attachment]:
        """Draw a picture."""
        return ["Here it is", Attachment("image/png", "dot.png", PNG)]

    async with bot_on(api, [ToolCall("1", "draw")], tools=[Tool(draw, is_final=True)]):
        api.person_says("draw")
        posts = await api.until(lambda: api.bot_posts() if len(api.said()) > 1 else None)
    assert "Here it is" in posts[0].shown
    assert [file["name"] for file in posts[1].files] == ["dot.png"]


async def test_a_file_whose_answer_was_lost_is_not_sent_twice(api: SlackApi, bot_on, sqlite_storage: Storage) -> None:
    async def draw() -> Attachment:
        """Draw a picture."""
        return Attachment("image/png", "dot.png", PNG)

    async with bot_on(api, [ToolCall("1", "draw")], tools=[Tool(draw, is_final=True)], clock=fast_clock()):
        api.order(LoseAnswer(), "files.completeUploadExternal")
        ts = api.person_says("draw")
        await statuses(sqlite_storage)
    files = [(file["name"], file["size"]) for each in api.bot_posts() for file in each.files]
    assert files == [("dot.png", len(PNG))]
    assert {each.thread_ts for each in api.bot_posts()} == {ts}
    assert next(iter(api.world.file_bytes.values())) == PNG


async def test_a_token_that_is_refused_for_a_while_keeps_what_is_owed(api: SlackApi, bot_on) -> None:
    async with bot_on(api, clock=fast_clock()):
        refusal = api.order(Refuse("invalid_auth"), "chat.postMessage", times=2)
        api.person_says("hello")
        await api.until(api.said)
    assert refusal.used == 2
    assert api.said() == ["You said: hello"]


async def test_what_nobody_asked_for_now_goes_where_its_conversation_is(
    api: SlackApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api) as bot:
        thread = api.person_says("hello", channel="C0GENERAL", deliver=False)
        keys = {"transport": "slack", "team_id": "T0001", "channel_id": "C0GENERAL", "thread_ts": thread}
        [payload] = bot.transport.plan(Message(None, Role.ASSISTANT, "It is time"), ())
        now = datetime.now(UTC)
        delivery = Delivery(7, 7, "slack", DeliveryKind.MESSAGE, payload, 0, now)
        ts = await bot.transport.send(keys, delivery)
        assert await bot.transport.send(keys, replace(delivery, attempts=1)) == ts
        direct = {name: value for name, value in keys.items() if name != "thread_ts"} | {"channel_id": "D0ALICE"}
        await bot.transport.send(direct, replace(delivery, id=8))
        assert await bot.transport.send(direct, replace(delivery, id=8, attempts=1)) is not None
    assert [(each.shown, each.thread_ts) for each in api.bot_posts("C0GENERAL")] == [("It is time", thread)]
    assert [(each.shown, each.thread_ts) for each in api.bot_posts()] == [("It is time", None)]
