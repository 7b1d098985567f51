"""Files that people send reach the model, and what does not is said in words."""

from datetime import UTC, datetime

import pytest
from standins.slack_api import BOT_USER, Refuse, SlackApi

from botservice.turns.turn import StoredEvent
from transports.slack import received_files
from transports.slack.inbound_events import EventSource, raw

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


async def prompt_of(api: SlackApi, bot_on, sent: list[dict], text: str = "look", **options) -> list:
    async with bot_on(api, **options) as bot:
        api.person_says(text, files=sent)
        await api.until(api.said)
        return bot.llm.prompts[-1]


async def test_a_picture_is_seen(api: SlackApi, bot_on) -> None:
    prompt = await prompt_of(api, bot_on, [api.add_file("dot.png", PNG, "image/png")])
    kinds = [part["type"] for part in prompt[-1]["content"]]
    assert "image_url" in kinds


async def test_a_text_is_read(api: SlackApi, bot_on) -> None:
    prompt = await prompt_of(api, bot_on, [api.add_file("notes.txt", b"the code is 4711", "text/plain")])
    assert "the code is 4711" in str(prompt[-1])
    assert "notes.txt" in str(prompt[-1])


async def test_a_text_in_an_old_encoding_is_read_as_it_was_written(api: SlackApi, bot_on) -> None:
    text = "明日の会議は十時からです。"
    prompt = await prompt_of(api, bot_on, [api.add_file("notes.txt", text.encode("shift_jis"), "text/plain")])
    assert text in str(prompt[-1])


async def test_a_file_without_words_is_a_message(api: SlackApi, bot_on) -> None:
    prompt = await prompt_of(api, bot_on, [api.add_file("notes.txt", b"the code is 4711", "text/plain")], text="")
    assert "4711" in str(prompt[-1])


async def test_what_slack_only_announces_is_asked_for(api: SlackApi, bot_on) -> None:
    file = api.add_file("notes.txt", b"the code is 4711", "text/plain")
    prompt = await prompt_of(api, bot_on, [{"id": file["id"], "file_access": "check_file_info"}])
    assert "4711" in str(prompt[-1])


@pytest.mark.parametrize("is_announced", [True, False])
async def test_a_file_that_is_too_large_is_named(api: SlackApi, bot_on, monkeypatch, is_announced: bool) -> None:
    monkeypatch.setattr(received_files, "SLACK_FILE_BYTES", 1000)
    file = api.add_file("big.txt", b"x" * 2000, "text/plain")
    prompt = await prompt_of(api, bot_on, [file if is_announced else {**file, "size": None}])
    assert "too large to fetch" in str(prompt[-1])
    assert "xxxx" not in str(prompt[-1])


async def test_the_token_is_given_to_slack_alone(api: SlackApi, bot_on) -> None:
    with SlackApi.running() as elsewhere:
        file = elsewhere.add_file("notes.txt", b"the code is 4711", "text/plain")
        prompt = await prompt_of(api, bot_on, [file])
    assert "it lies outside Slack" in str(prompt[-1])
    assert "4711" not in str(prompt[-1])


async def test_a_page_that_asks_to_sign_in_is_no_file(api: SlackApi, bot_on) -> None:
    file = api.add_file("notes.txt", b"4711", "text/plain")
    api.world.tokens["xoxb-other"] = "T0001"
    async with bot_on(api) as bot:
        api.world.tokens = {}
        bot.transport._slack.workspaces.own  # noqa: B018 - known before the token is taken away
        api.person_says("look", files=[file])
        await api.until(lambda: bot.llm.prompts)
        prompt = bot.llm.prompts[-1]
    assert "Slack does not give it out" in str(prompt[-1])


async def test_a_file_that_is_gone_leaves_the_words(api: SlackApi, bot_on) -> None:
    file = api.add_file("notes.txt", b"4711", "text/plain")
    api.world.file_bytes.clear()
    prompt = await prompt_of(api, bot_on, [file])
    assert "could not be fetched" in str(prompt[-1])


async def test_names_stand_where_ids_were(api: SlackApi, bot_on) -> None:
    prompt = await prompt_of(
        api, bot_on, [], "ask <@U0BOB> in <#C0GENERAL|general>, see <https://a.example/x|this> &amp; <!here>"
    )
    assert "ask @Bob in #general, see [this](https://a.example/x) & @here" in str(prompt[-1])


async def test_a_person_whom_slack_does_not_name_is_answered(api: SlackApi, bot_on) -> None:
    async with bot_on(api):
        api.order(Refuse("missing_scope"), "users.info", times=None)
        api.person_says(f"<@{BOT_USER}> hi", channel="C0GENERAL")
        await api.until(lambda: api.said("C0GENERAL"))
    assert api.said("C0GENERAL") == ["You said: hi"]


async def test_a_glimpse_of_a_message_fetches_nothing(api: SlackApi, bot_on) -> None:
    file = api.add_file("notes.txt", b"the code is 4711", "text/plain")
    async with bot_on(api) as bot:
        ts = api.person_says("look", files=[file], deliver=False)
        body = api.envelope(api.message_event(api.world.find("D0ALICE", ts)), "Ev1")
        event = StoredEvent(1, "k", raw(EventSource.MESSAGE, body), datetime.now(UTC))
        glimpse, whole = await bot.transport.peek(event), await bot.transport.read(event)
    assert glimpse is not None
    assert whole is not None
    assert (glimpse.text, glimpse.attachments) == ("look\n[file, notes.txt]", ())
    assert "4711" in whole.text
