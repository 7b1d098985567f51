"""The documents' code runs: each document's blocks one after the other, in a folder and with a model of its own.

In `docs/guides` shell blocks run as well, and a block below `<!-- file: NAME -->` is a file that the reader writes.
"""

import ast
import contextlib
import gc
import inspect
import io
import itertools
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from standins.openai_api import OpenAIApi

ROOT = Path(__file__).parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *(path for room in ("docs", "docs/guides") for path in sorted((ROOT / room).glob("*.md"))),
]
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE = re.compile(r"<!-- file: (\S+) -->")
NOT_RUN = "<!-- not run"  # stands in the line before a block, with the reason


@dataclass
class Block:
    """A piece of code in a document, and the output that the document shows for it.

    Attributes:
        kind: python, sh, or the name of the file that it is.
    """

    line: int
    code: str
    output: str | None
    kind: str = "python"


def blocks_of(text, *, has_shell=False):
    """Return the code of a document that is to be run, and the files that its reader writes."""
    fences = list(_FENCE.finditer(text))
    found = []
    for fence, following in itertools.zip_longest(fences, fences[1:]):
        before = text[: fence.start()].rstrip().rpartition("\n")[2]
        file = _FILE.fullmatch(before)
        kind = file[1] if file else fence[1]
        if before.startswith(NOT_RUN) or not (file or kind == "python" or (has_shell and kind == "sh")):
            continue
        is_output = (
            not file
            and following is not None
            and following[1] == "text"
            and not text[fence.end() : following.start()].strip()
        )
        found.append(Block(text[: fence.start()].count("\n") + 2, fence[2], following[2] if is_output else None, kind))
    return found


def blocks_in(path):
    """Return the blocks of a document; shell is run in guides."""
    return blocks_of(path.read_text(), has_shell=path.parent.name == "guides")


def run_shell(block, home):
    """Run a block in the current folder, in which the next one goes on, and return what it printed."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    search = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = kept | {"PATH": search, "HOME": str(home), "LOG_LEVEL": "ERROR", "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        ["sh", "-eu", "-c", f'{block.code}\npwd > "$HOME/folder"'],
        check=False,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ended.returncode == 0, f"line {block.line}: {block.code}\n{ended.stdout}\n{ended.stderr}"
    os.chdir((home / "folder").read_text().strip())
    return ended.stdout


def write_file(block):
    """Write a file as the reader does."""
    path = Path(block.kind)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(block.code)


async def run(block, path, names):
    """Run a block of Python as `python -m asyncio` would, and return what it printed."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile("\n" * (block.line - 1) + block.code, str(path), "exec", flags=flags)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = eval(code, names)
        if inspect.isawaitable(result):
            await result
    return printed.getvalue()


SLOW = {"first-bot", "mcp", "testing", "tools", "trying-again"}  # many commands and servers are processes of their own


def documents():
    """Yield the documents that have code, those with many commands among the slow tests."""
    for path in DOCUMENTS:
        if blocks_in(path):
            yield pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in SLOW else [])


# What a document leaves open, its reader's process closes by its end.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("path", list(documents()))
async def test_the_code_of_a_document_runs_and_prints_what_it_shows(path, tmp_path, tmp_path_factory, monkeypatch):
    home = tmp_path_factory.mktemp("home")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))  # as `python -m asyncio` has it
    monkeypatch.delitem(sys.modules, "bot", raising=False)
    for name in ("OPENAI_API_KEY", "OPENAI_MODEL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    names = {"__name__": f"document_{path.stem}"}
    with OpenAIApi.running() as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        monkeypatch.setenv("OPENAI_MODEL", "gpt-5.5")
        for block in blocks_in(path):
            if block.kind not in ("python", "sh"):
                write_file(block)
                continue
            printed = run_shell(block, home) if block.kind == "sh" else await run(block, path, names)
            if block.output is not None:
                assert printed == block.output, f"{path.name}, line {block.line}"
        names.clear()
        sys.modules.pop("bot", None)
        gc.collect()


def test_blocks_are_found_with_their_output():
    text = "a\n```python\nx = 1\n```\n\n```text\n1\n```\n<!-- not run: a key -->\n```python\ny\n```\n```sh\nls\n```\n"
    assert blocks_of(text) == [Block(3, "x = 1\n", "1\n")]


def test_files_that_readers_write_and_shell_are_found_where_they_are_run():
    text = "<!-- file: chats/a.txt -->\n```text\nyou: a\n```\n```sh\nls\n```\n```text\na.txt\n```\n"
    assert blocks_of(text, has_shell=True) == [
        Block(3, "you: a\n", None, "chats/a.txt"),
        Block(6, "ls\n", "a.txt\n", "sh"),
    ]


def test_a_shell_block_that_fails_is_told_with_its_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(AssertionError, match="line 3: false"):
        run_shell(Block(3, "false", None, "sh"), tmp_path)
