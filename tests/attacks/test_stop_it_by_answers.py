"""Stop it, by answers: whatever a model is talked into writing takes little time and few messages."""

import time
from collections.abc import Callable

import pytest
from attacks.shapes import LENGTH, shapes
from standins.bot_api import BotApi

from botservice.config.setting_choices import SlackPings
from botservice.core.messages import Message
from transports.common.too_long_messages import MAX_MESSAGES, is_too_intricate, note
from transports.markdown.reading import read_markdown
from transports.slack.answer_blocks import as_page
from transports.slack.answer_messages import plan_answer as plan_for_slack
from transports.slack.formatting import settled_text, without_pings
from transports.slack.inbound_messages import readable
from transports.telegram.answer_messages import plan_answer as plan_for_telegram
from transports.telegram.live import tail_of
from transports.web.markdown import render_markdown

SHAPES = dict(shapes())
# So many seconds of its own processor time for what has to take 0.3: machines differ, and quadratic is minutes.
LONGEST_SECONDS = 6.0

FORMATTERS: dict[str, Callable[[str], object]] = {
    "telegram": lambda text: plan_for_telegram(Message(text=text), ()),
    "telegram, growing": tail_of,
    "slack": lambda text: plan_for_slack(Message(text=text), (), SlackPings.NONE),
    "slack, growing": lambda text: as_page(read_markdown(settled_text(text, SlackPings.NONE)), is_growing=True),
    "slack, what people write": lambda text: readable(text, {}, "B"),
    "browser": render_markdown,
}


def test_there_are_many_shapes() -> None:
    assert len(SHAPES) > 60
    assert all(len(text) <= LENGTH for text in SHAPES.values())


@pytest.mark.parametrize("shape", SHAPES)
def test_an_answer_of_any_shape_makes_a_few_messages_that_hold_it_all(shape: str) -> None:
    text = SHAPES[shape]
    for plan in (
        plan_for_telegram(Message(text=text, language="de"), ()),
        plan_for_slack(Message(text=text, language="de"), (), SlackPings.NONE),
    ):
        assert len(plan) <= MAX_MESSAGES
        file = plan[-1].get("file") if plan else None
        if file is not None:
            assert file["text"] == text
            assert note("de") in plan[-1].values()
    assert sum(map(len, render_markdown(text))) < 10 * LENGTH


@pytest.mark.slow
@pytest.mark.parametrize("formatter", FORMATTERS)
def test_an_answer_of_any_shape_takes_little_time(formatter: str) -> None:
    slow = {}
    for shape, text in SHAPES.items():
        began = time.thread_time()
        FORMATTERS[formatter](text)
        took = time.thread_time() - began
        if took > LONGEST_SECONDS:
            slow[shape] = took
    assert slow == {}


def test_what_people_really_write_is_formatted() -> None:
    code = "```python\n" + "values[i] = {'a': b[c] * d_e} | f  # <x>\n" * 500 + "```\n"
    table = "| a | b | c |\n|---|---|---|\n" + "| 1 | `two` | **three** |\n" * 200
    prose = (
        "A sentence with **bold** words, `code` and a [link](https://example.org/a).\n\n- point\n  - below it\n\n" * 150
    )
    for text in (code, table, prose, code + prose[:8000]):
        assert not is_too_intricate(text)
    assert not is_too_intricate("> " * 5 + "quoted\n" + "        - far to the right\n")


def test_an_answer_of_any_length_ends_in_a_file() -> None:
    text = "A sentence like many others.\n" * 20_000
    for plan in (plan_for_telegram(Message(text=text), ()), plan_for_slack(Message(text=text), (), SlackPings.NONE)):
        assert len(plan) <= MAX_MESSAGES
        assert plan[-1]["file"]["text"] == text
    short = "word " * 1000
    plain = plan_for_telegram(Message(text=short), (), is_rich=False)
    assert [each["method"] for each in plain] == ["sendMessage"] * 2
    assert [each["method"] for each in plan_for_telegram(Message(text=short), ())] == ["sendRichMessage"]
    assert {note(language) for language in ("pt-br", "pt", "xx", None)} == {note("pt"), note("en")}


def test_nobody_is_pinged_by_a_mention_that_is_odd_or_never_ends() -> None:
    for text in ("<!channel|a<b>", "<!here", "<!subteam^S1|<x>", "<@U1|a<b>", "<@U1", "<!CHANNEL|x\ny>"):
        shown = without_pings(text, SlackPings.NONE)
        assert "<!" not in shown
        assert "<@" not in shown
    assert without_pings("<@U1|a<b> <!here|x<y>", SlackPings.ALL) == "<@U1|a<b> <!here|x<y>"


async def test_the_file_of_a_long_answer_arrives(sqlite_storage) -> None:
    from attacks.telegram_bot import running

    text = "A sentence like many others.\n" * 3000
    with BotApi.running() as api:
        api.add_private_chat(42)
        async with running(api, sqlite_storage, [text]):
            api.person_says("tell me", chat_id=42)
            shown = await api.messages(42, MAX_MESSAGES)
        assert len(api.visible_texts(42)) <= MAX_MESSAGES
        assert note("en") in str(shown[-1])
