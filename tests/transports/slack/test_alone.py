"""What concerns one person alone, or was taken back: no other person reads it, whatever is refused."""

import pytest
from standins.slack_api import BOT_USER, Refuse, SlackApi

from botservice import Storage
from botservice.config.setting_choices import SlackPings
from botservice.core.messages import Message, Role
from botservice.turns.turn import StoredEvent
from transports.slack.answer_messages import plan_answer
from transports.slack.inbound_events import EventSource, raw

BOT = f"<@{BOT_USER}>"
CHANNEL = "C0GENERAL"
RENAME = "agents.sessions.rename"


@pytest.mark.parametrize("said", [f"{BOT} /memory", f"/usage {BOT}", f"{BOT} !access", f"{BOT} !Why"])
async def test_however_it_is_written_what_concerns_one_person_is_read_by_them_alone(
    api: SlackApi, bot_on, said: str
) -> None:
    async with bot_on(api):
        api.person_says(said, channel=CHANNEL)
        await api.until(lambda: api.world.whispers or api.said(CHANNEL))
    assert [(channel, user) for channel, user, _ in api.world.whispers] == [(CHANNEL, "U0ALICE")]
    assert api.said(CHANNEL) == []


@pytest.mark.parametrize("code", ["unknown_method", "missing_scope", "user_not_in_channel"])
async def test_where_whispering_is_refused_it_is_told_in_their_own_conversation(
    api: SlackApi, bot_on, code: str
) -> None:
    async with bot_on(api):
        api.order(Refuse(code), "chat.postEphemeral", times=None)
        for number in (1, 2):
            api.person_says(f"{BOT} !usage", channel=CHANNEL, user="U0BOB")
            await api.until(lambda number=number: len(api.said("D0BOB")) == number)
    assert api.said(CHANNEL) == api.said() == []
    assert len(api.calls("chat.postEphemeral")) == (2 if code == "user_not_in_channel" else 1)


async def test_what_can_be_told_to_nobody_alone_is_told_to_nobody(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        api.order(Refuse("missing_scope"), "chat.postEphemeral", times=None)
        order = api.order(Refuse("missing_scope"), "conversations.open", times=None)
        api.person_says(f"{BOT} !usage", channel=CHANNEL)
        await api.until(lambda: order.used)
        api.person_says(f"{BOT} hello", channel=CHANNEL)
        await api.until(lambda: api.said(CHANNEL))
    assert api.said(CHANNEL) == ["You said: hello"]


def test_the_whole_of_what_concerns_one_person_is_theirs_alone(storage_free_event: StoredEvent) -> None:
    answer = Message(None, Role.ASSISTANT, "word " * 40_000)
    planned = plan_answer(answer, [storage_free_event], SlackPings.NONE)
    assert "file" in planned[-1]
    assert {each["only_for"] for each in planned} == {"U0ALICE"}


@pytest.fixture
def storage_free_event(api: SlackApi, sqlite_storage: Storage) -> StoredEvent:
    api.person_says(f"{BOT} !memory", channel=CHANNEL, deliver=False)
    with api.condition:
        body = api.envelope(api.message_event(api.world.posts[-1]), "Ev1")
    return StoredEvent(1, "slack:1", raw(EventSource.MESSAGE, body), sqlite_storage.now())


async def until_answered(api: SlackApi, typist, bot) -> None:
    typist.write("Here it is.")
    typist.finish()
    await api.until(typist.pieces.empty)
    await bot.worker.stop(grace_seconds=5)
    await bot.transport._slack.background.settle()


async def test_words_that_were_taken_back_are_no_title(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist) as bot:
        ts = api.person_says("My pin is 4711, is it safe?")
        await api.until(lambda: api.world.statuses)
        api.send_event(api.deleted_event("D0ALICE", ts))
        await api.all_taken()
        await until_answered(api, typist, bot)
    assert "4711" not in str(api.calls(RENAME))


@pytest.mark.slow
async def test_words_that_were_changed_are_a_title_as_they_are_now(api: SlackApi, bot_on_both, typist) -> None:
    async with bot_on_both(api, typist) as bot:
        ts = api.person_says("My pin is 4711, is it safe?")
        await api.until(lambda: api.world.statuses)
        for text in ("Is my pin safe, 4711?", "Is my pin safe?"):
            api.send_event(api.changed_event("D0ALICE", ts, text))
            await api.all_taken()
        await until_answered(api, typist, bot)
    assert api.world.titles == {("D0ALICE", ts): "Is my pin safe?"}
