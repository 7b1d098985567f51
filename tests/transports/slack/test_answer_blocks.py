"""Tables and charts: drawn where Slack draws them, words where it does not, and never a word lost or said twice."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standins.clocks import fast_clock
from standins.slack_api import LoseAnswer, Refuse, SlackApi, limited

from botservice import Storage
from botservice.config.setting_choices import SlackPings
from transports.markdown.reading import read_markdown
from transports.slack.answer_blocks import as_page, read_page
from transports.slack.formatting import settled_text
from transports.slack.refusals import Feature

TABLE = "| Month | Visitors |\n|---|---:|\n| May | 1,200 |\n| June | 950 |"
ANSWER = f"## Visitors\n\nHere they are:\n\n{TABLE}\n\nMay was better."
CHART = (
    "```chart\nbar: Visitors by month\n| Month | Web | Shop |\n|---|---|---|\n| May | 12 | 3 |\n| June | 9 | 4.5 |\n```"
)
DRAWN = "## Visitors\n\nHere they are:\n\n⟦data_table⟧\n\nMay was better."


def kinds(post) -> list[str]:
    return [block["type"] for block in post.blocks]


async def test_a_table_comes_as_one_that_people_can_sort(api: SlackApi, bot_on) -> None:
    async with bot_on(api, [ANSWER]):
        api.person_says("how many?")
        post = (await api.until(api.bot_posts))[0]
    table = post.blocks[1]
    assert kinds(post) == ["markdown", "data_table", "markdown", "context_actions"]
    assert table["caption"] == "Visitors"
    assert [cell["text"] for cell in table["rows"][0]] == ["Month", "Visitors"]
    assert table["rows"][1][1] == {"type": "raw_number", "value": 1200, "text": "1,200"}
    assert post.text == ANSWER, "notifications and old clients read the words"
    assert len(api.calls("chat.postMessage")) == 1


async def test_a_table_in_an_answer_that_grows_is_drawn_once_it_is_complete(api: SlackApi, bot_on, typist) -> None:
    async with bot_on(api, typist):
        api.person_says("how many?")
        begin, end = ANSWER.split("| June")
        typist.write(begin)
        post = (await api.until(lambda: [each for each in api.world.posts if each.is_streaming]))[0]
        typist.write(f"| June{end}")
        await api.until(lambda: "better" in post.shown)
        typist.write(" Much better.")
        typist.finish()
        await api.until(api.said)
    assert [line for line in post.shown.split("\n") if line] == [
        "## Visitors",
        "Here they are:",
        "⟦data_table⟧",
        "May was better. Much better.",
    ]
    assert not any("|" in state for state in post.states), "half a table never shows"
    assert api.calls("chat.postMessage") == api.calls("chat.update") == []


@pytest.mark.parametrize("grows", [True, False])
async def test_a_workspace_without_tables_costs_one_call_once(
    api: SlackApi, bot_on, typist, grows: bool, caplog: pytest.LogCaptureFixture
) -> None:
    api.world.without = {"data_table"}
    async with bot_on(api, typist if grows else [ANSWER, ANSWER]):
        for number in (1, 2):
            api.person_says("how many?")
            if grows:
                typist.write("## Visitors\n\n")
                await api.until(lambda: [each for each in api.world.posts if each.is_streaming])
                typist.write(ANSWER.removeprefix("## Visitors\n\n"))
                typist.finish()
            await api.until(lambda number=number: len(api.said()) == number)
    assert api.said() == [ANSWER] * 2
    calls = [name for name, _, outcome in api.calls_made if outcome == "invalid_blocks"]
    assert len(calls) == 1
    assert [each.message for each in caplog.records].count("slack.without_feature") == 1


async def test_what_a_workspace_refused_is_remembered_by_the_next_process(
    api: SlackApi, bot_on_both, storage: Storage
) -> None:
    api.world.without = {"data_table"}
    for number in (1, 2):
        async with bot_on_both(api, [ANSWER]):
            api.person_says("how many?")
            await api.until(lambda number=number: len(api.said()) == number)
    assert api.outcomes("chat.postMessage") == ["invalid_blocks", "ok", "ok"]


async def test_a_chart_is_drawn_from_a_block_that_is_called_one(api: SlackApi, bot_on) -> None:
    async with bot_on(api, [f"Look:\n\n{CHART}\n\nDone."]):
        api.person_says("how many?")
        post = (await api.until(api.bot_posts))[0]
    chart = post.blocks[1]
    assert kinds(post)[:3] == ["markdown", "data_visualization", "markdown"]
    assert (chart["title"], chart["chart"]["type"]) == ("Visitors by month", "bar")
    assert chart["chart"]["series"][1] == {
        "name": "Shop",
        "data": [{"label": "May", "value": 3}, {"label": "June", "value": 4.5}],
    }


@pytest.mark.parametrize("without", [{"data_visualization"}, {"data_visualization", "data_table"}])
async def test_a_workspace_without_charts_shows_the_title_and_the_table(api: SlackApi, bot_on, without) -> None:
    api.world.without = without
    async with bot_on(api, [f"Look:\n\n{CHART}\n\nDone."]):
        api.person_says("how many?")
        post = (await api.until(api.bot_posts))[0]
    assert "**Visitors by month**" in post.shown
    assert "```" not in post.shown
    assert api.outcomes("chat.postMessage") == ["invalid_blocks", "ok"]


async def test_an_answer_that_grew_costs_one_more_call_whatever_is_refused(api: SlackApi, bot_on, typist) -> None:
    api.world.without = {"data_visualization", "data_table"}
    async with bot_on(api, typist):
        api.person_says("how many?")
        typist.write("Look: ")
        await api.until(lambda: [each for each in api.world.posts if each.is_streaming])
        typist.write(f"\n\n{CHART}\n\n{TABLE}")
        typist.finish()
        await api.until(api.said)
    assert [outcome for name, _, outcome in api.calls_made if name.endswith("Stream")].count("invalid_blocks") == 1
    assert "**Visitors by month**" in api.said()[0]
    assert TABLE in api.said()[0]


async def test_a_third_chart_is_a_table(api: SlackApi, bot_on) -> None:
    async with bot_on(api, ["\n\n".join([CHART] * 3)]):
        api.person_says("how many?")
        post = (await api.until(api.bot_posts))[0]
    assert kinds(post).count("data_visualization") == 2
    assert "| May | 12 | 3 |" in post.blocks[2]["text"]


@pytest.mark.parametrize("fault", [LoseAnswer(), limited(1)])
async def test_an_answer_with_a_table_comes_once_whatever_happens(api: SlackApi, bot_on, fault) -> None:
    async with bot_on(api, [ANSWER], clock=fast_clock()):
        api.order(fault, "chat.postMessage")
        api.person_says("how many?")
        await api.until(api.said)
    assert api.said() == [DRAWN.replace("\n\n⟦", "\n\n⟦")]


async def test_a_refusal_of_something_else_turns_no_tables_off(api: SlackApi, bot_on) -> None:
    async with bot_on(api, [ANSWER, ANSWER]):
        api.order(Refuse("msg_too_long"), "chat.postMessage")
        for number in (1, 2):
            api.person_says("how many?")
            await api.until(lambda number=number: len(api.said()) == number)
    assert "data_table" in kinds(api.bot_posts()[1])


async def test_where_only_the_asker_reads_it_a_table_stays_words(api: SlackApi, bot_on) -> None:
    async with bot_on(api, [ANSWER]):
        api.command("how many?")
        _, body = (await api.until(lambda: api.world.responses))[0]
    assert body["text"] == ANSWER


@pytest.mark.parametrize(
    "table",
    [
        "| a | b |\n|---|---|\n| [x](https://example.com) | 1 |",
        "| a |\n|---|\n" + "| 1 |\n" * 101,
        "|" + " a |" * 21 + "\n|" + "---|" * 21 + "\n|" + " b |" * 21,
        "| a |\n|---|\n" + f"| {'x' * 500} |\n" * 21,
        "```\n| a | b |\n|---|---|\n| 1 | 2 |\n```",
        "- in a list\n\n  | a | b |\n  |---|---|\n  | 1 | 2 |",
    ],
    ids=["with links", "too long", "too wide", "too many characters", "in code", "in a list"],
)
def test_a_table_that_would_lose_something_stays_words(table: str) -> None:
    assert read_page(f"Look:\n\n{table}\n").figures == ()


def test_tables_together_hold_no_more_than_slack_takes() -> None:
    one = "| a |\n|---|\n" + f"| {'x' * 400} |\n" * 15
    assert len(read_page(f"{one}\n\nand\n\n{one}\n").figures) == 1


@pytest.mark.parametrize(
    "chart",
    [
        "```chart\nbar: A\n| a | b |\n|---|---|\n| x | much |\n```",
        "```chart\nradar: A\n| a | b |\n|---|---|\n| x | 1 |\n```",
        "```chart\npie: A\n| a | b |\n|---|---|\n| x | -1 |\n```",
        "```chart\nbar: A\n| a | b |\n|---|---|\n| x | 1 |\n| x | 2 |\n```",
        f"```chart\nbar: {'A' * 51}\n| a | b |\n|---|---|\n| x | 1 |\n```",
    ],
)
def test_a_chart_that_slack_would_refuse_is_not_tried(chart: str) -> None:
    assert not read_page(chart).needs


PIECES = st.sampled_from(
    [
        TABLE,
        CHART,
        "words",
        "more |",
        "| a",
        "```",
        "```chart",
        "```python\nx | y\n```",
        "# Head",
        "",
        "- a\n- b",
        "|---|",
    ]
)


@given(st.lists(PIECES, max_size=8), st.sets(st.sampled_from([Feature.TABLES, Feature.CHARTS])))
def test_no_figure_of_a_text_that_grows_is_shown_by_half(pieces: list[str], refused: set[Feature]) -> None:
    text, known = "\n\n".join(pieces), frozenset(refused)
    whole = read_page(text).refusing(known)
    for end in range(0, len(text) + 1, 3):
        shown = as_page(read_markdown(settled_text(text[:end], SlackPings.NONE)), is_growing=True).refusing(known)
        if whole.text.startswith(shown.text):
            assert not [each for each in whole.figures if each.begin < len(shown.text) < each.end]
            assert shown.figures == whole.figures[: len(shown.figures)]


@given(st.lists(PIECES, max_size=8))
def test_no_word_is_lost_between_figures(pieces: list[str]) -> None:
    text = "\n\n".join(pieces)
    page = read_page(text)
    said = "".join(block.get("text", "") for block in page.blocks())
    streamed = "".join(chunk.get("text", "") for chunk in page.chunks())
    for word in ("words", "more |", "Head", "x | y"):
        assert said.count(word) == streamed.count(word) == text.count(word), word
