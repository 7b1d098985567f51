"""What a terminal shows that can do more than print: Markdown as it is meant, whatever stands in it."""

import cProfile
import io
import stat

import pytest
from rich.cells import cell_len
from rich.console import Console

from botservice.core.visible_text import FSI, PDI, visible
from transports.terminal.lines import EditedLines
from transports.terminal.rendering import RenderedScreen, split_blocks
from transports.terminal.screens import PlainScreen

ANSWER = """# Title

Some **bold** text.

- one
- two

```python
x = 1

y = 2
```

| a | b |
|---|---|
| 1 | 2 |

The end."""


@pytest.fixture
def target():
    return io.StringIO()


@pytest.fixture
def screen(target):
    """A screen that is written to a text: nothing of it is drawn again there."""
    return RenderedScreen(Console(file=target, width=60, force_terminal=False, highlight=False))


def shown_at(width: int, text: str, monkeypatch) -> list[str]:
    """Return what both screens show of a text of the service itself."""
    monkeypatch.setenv("COLUMNS", str(width))
    targets = [io.StringIO() for _ in range(2)]
    drawn = RenderedScreen(Console(file=targets[0], width=width, force_terminal=False, highlight=False))
    for each in drawn, PlainScreen(targets[1], is_interactive=True):
        each.answer(text, is_plain=True)
        each.earlier(text, is_plain=True)
        each.note(text, is_waiting=False, is_plain=True)
    return [each.getvalue() for each in targets]


@pytest.mark.parametrize("filler", ["x", "x ", "你", "א", "x\u0301"])
def test_what_goes_on_of_an_argument_cannot_pass_as_another_line(filler, monkeypatch):
    for length in range(45):
        shown = visible(f"{filler * length}amount: 9999", is_code=True)
        question = f"May I do this for Ann: pay?\nto: {shown}\namount: 5"
        for seen in shown_at(40, question, monkeypatch):
            lines = seen.split("\n")
            assert [line for line in lines if line.startswith("amount")] == ["amount: 5"] * 3, seen
            assert max(map(cell_len, lines)) <= 40
            assert all(line.count(FSI) == line.count(PDI) for line in lines), "each line holds its isolates"
            assert _letters(seen).count(_letters(question)) == 3


def _letters(text: str) -> str:
    return "".join(text.replace(FSI, "").replace(PDI, "").split())


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
async def test_an_answer_that_grows_looks_in_the_end_as_one_that_came_at_once(screen, target, size):
    screen.begin()
    screen.answer(ANSWER)
    screen.end("")
    whole = target.getvalue()
    screen.begin()
    for at in range(0, len(ANSWER), size):
        screen.show(ANSWER[at : at + size])
    screen.answer(ANSWER)
    screen.end("")
    assert [line.strip() for line in target.getvalue().removeprefix(whole).split("\n") if line.strip()] == [
        line.strip() for line in whole.split("\n") if line.strip()
    ]
    for shown in ("Title", "Some bold text.", " • one", "x = 1", "The end."):
        assert shown in whole


async def test_the_name_of_the_bot_stands_above_each_answer(screen, target):
    screen.introduce("Ada\x1b[2J")
    screen.begin()
    screen.show("First.\n\nSecond")
    screen.answer("First.\n\nSecond.")
    screen.end("")
    screen.begin()
    screen.answer("Third.")
    assert target.getvalue().split() == ["Ada\\x1b[2J", "First.", "Second.", "Ada\\x1b[2J", "Third."]


async def test_a_block_stays_once_it_is_complete(screen, target):
    screen.begin()
    screen.show("First.\n\nSecond")
    assert target.getvalue().split() == ["First."]
    screen.show(" one.\n\n")
    screen.answer("First.\n\nSecond one.\n\n")
    screen.end("")
    assert target.getvalue().split() == ["First.", "Second", "one."]


async def test_what_was_said_before_a_tool_stays(screen, target):
    screen.begin()
    screen.show("Let me look.")
    screen.activity("look_up")
    screen.show("Found it.")
    screen.answer("Found it.")
    screen.end("")
    assert target.getvalue().split() == ["Let", "me", "look.", "Found", "it."]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[2J\x07 gone", "\\x1b[2J\\x07 gone"),
        ("<b onclick='x'>tag</b>", "tag"),
        ("<blink>tag</blink>", "<blink>tag</blink>"),
        ("[bank](https://evil.example)", "bank (https://evil.example)"),
        ("[bold red]no markup[/]", "[bold red]no markup[/]"),
    ],
)
async def test_nothing_that_is_rendered_is_more_than_text(screen, target, text, shown):
    screen.begin()
    screen.activity(text)
    screen.progress(text)
    screen.answer(text)
    screen.note(text, is_waiting=True)
    screen.earlier(text)
    screen.end("")
    assert target.getvalue().count(shown) == 3
    assert "\x1b" not in target.getvalue()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (r"so \(e^{i\pi} = -1\), as \[a_1 * b_2 * c\] says", r"so \(e^{i\pi} = -1\), as \[a_1 * b_2 * c\] says"),
        (r"\*not bold\* and \( open", "*not bold* and ( open"),
        (r"write \[x\] and \(see **this**\)", "write [x] and (see this)"),
        ("![two\nwords](https://a.example/c.png)", "two words (https://a.example/c.png)"),
        ("![a *big* cat](https://a.example/cat.png)", "a big cat (https://a.example/cat.png)"),
        ("![](https://a.example/cat.png) there", "https://a.example/cat.png there"),
        ("<https://a.example/page>.", "https://a.example/page."),
        ("[![shot](https://a.example/s.png)](https://a.example)", "shot (https://a.example/s.png) (https://a.example)"),
    ],
)
async def test_formulas_pictures_and_addresses_are_written_out(screen, target, text, shown):
    screen.answer(text)
    assert target.getvalue().strip() == shown


@pytest.mark.parametrize("size", [3, 1000])
async def test_lines_and_paragraphs_stand_as_they_were_written(screen, target, size):
    poem = "Roses are red,\nviolets are blue.\n\nThe second verse.\n- one\n- two\n\n\\(a \\\\ b = c\\)"
    screen.begin()
    for at in range(0, len(poem), size):
        screen.show(poem[at : at + size])
    screen.answer(poem)
    screen.end("")
    assert [line.rstrip() for line in target.getvalue().rstrip("\n").split("\n")] == [
        "Roses are red,",
        "violets are blue.",
        "",
        "The second verse.",
        " • one",
        " • two",
        "",
        "\\(a \\\\ b = c\\)",
    ]


@pytest.mark.parametrize("width", [12, 40, 140])
def test_no_word_is_cut_off_however_narrow_a_terminal_is(width):
    target = io.StringIO()
    deep = "\n".join(f"{'  ' * level}- level{level}" for level in range(12))
    cells = [f"{'x' * 9}{number}" for number in range(9)]
    table = "\n".join(f"|{'|'.join(row)}|" for row in ([f"head{n}" for n in range(9)], ["---"] * 9, cells))
    RenderedScreen(Console(file=target, width=width)).answer(f"{deep}\n\n{table}")
    shown = "".join(target.getvalue().split())
    for number in range(9):
        assert f"level{number}" in shown
        assert f"head{number}" in shown
        assert cells[number] in shown


async def test_a_picture_in_a_table_stands_in_its_cell(screen, target):
    screen.answer("| what | where |\n|---|---|\n| cat | ![a cat](https://a.example/c.png) |")
    [row] = [line.split() for line in target.getvalue().splitlines() if line.strip().startswith("cat")]
    assert row == ["cat", "a", "cat", "(https://a.example/c.png)"]


@pytest.mark.parametrize("text", ["[" * 20_000, "> " * 5_000, "*a **b " * 4_000, "a\n\n" * 30_000])
@pytest.mark.slow
async def test_what_is_too_intricate_is_shown_as_it_is(screen, target, text):
    screen.begin()
    screen.show(text)
    screen.answer(text)
    screen.end("")
    assert "".join(target.getvalue().split()) == "".join(text.split()) or len(target.getvalue()) >= len(text) // 2


async def test_a_terminal_that_was_closed_ends_the_chat(target, screen):
    screen.begin()
    target.close()
    screen.answer("hello")
    screen.end("")
    assert screen.is_gone


def test_blocks_that_may_still_change_are_kept_open():
    assert split_blocks("one\n") == ("", "one\n")
    assert split_blocks("one\n\ntwo") == ("one\n\n", "two")
    assert split_blocks("- one\n\n- two\n") == ("", "- one\n\n- two\n")
    assert split_blocks("```\none\n\ntwo\n") == ("", "```\none\n\ntwo\n")


def test_the_history_is_read_by_its_owner_alone(tmp_path):
    path = tmp_path / "state" / "botservice" / "chat_history"
    EditedLines(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    EditedLines(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_without_a_place_for_a_history_there_is_none(tmp_path):
    (tmp_path / "file").write_text("")
    EditedLines(tmp_path / "file" / "chat_history")
    EditedLines(None)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def calls_for(lines: int) -> int:
    """Return how many functions are called to show a list that grows line by line."""
    profile = cProfile.Profile()
    screen = RenderedScreen(Console(file=io.StringIO(), width=60))

    def show() -> None:
        for _ in range(lines):
            screen.show("- item\n")
        screen.answer("- item\n" * lines)

    profile.runcall(show)
    return sum(each.callcount for each in profile.getstats())


def test_a_long_list_that_grows_takes_work_in_proportion_to_its_length() -> None:
    assert calls_for(2000) < 3 * calls_for(1000)
