"""The documents' code runs: each document's blocks one after the other, in a folder and with a model of its own."""

import ast
import contextlib
import gc
import inspect
import io
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

import pytest
from standins.openai_api import OpenAIApi

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(path for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")] if path.exists())
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = "<!-- not run"  # stands in the line before a block, with the reason


@dataclass
class Block:
    """A piece of Python in a document, and the output that the document shows for it."""

    line: int
    code: str
    output: str | None


def blocks_of(text):
    """Return the Python of a document that is to be run."""
    fences = list(_FENCE.finditer(text))
    found = []
    for fence, following in itertools.zip_longest(fences, fences[1:]):
        before = text[: fence.start()].rstrip().rpartition("\n")[2]
        if fence[1] != "python" or before.startswith(NOT_RUN):
            continue
        is_output = (
            following is not None and following[1] == "text" and not text[fence.end() : following.start()].strip()
        )
        found.append(Block(text[: fence.start()].count("\n") + 2, fence[2], following[2] if is_output else None))
    return found


async def run(block, path, names):
    """Run a block as `python -m asyncio` would, and return what it printed."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile("\n" * (block.line - 1) + block.code, str(path), "exec", flags=flags)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = eval(code, names)
        if inspect.isawaitable(result):
            await result
    return printed.getvalue()


# What a document leaves open, its reader's process closes by its end.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize(
    "path", [path for path in DOCUMENTS if blocks_of(path.read_text())], ids=lambda path: path.stem
)
async def test_the_code_of_a_document_runs_and_prints_what_it_shows(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("OPENAI_API_KEY", "OPENAI_MODEL", "DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)
    names = {"__name__": f"document_{path.stem}"}
    with OpenAIApi.running() as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        monkeypatch.setenv("OPENAI_MODEL", "gpt-5.5")
        for block in blocks_of(path.read_text()):
            printed = await run(block, path, names)
            if block.output is not None:
                assert printed == block.output, f"{path.name}, line {block.line}"
        names.clear()
        gc.collect()


def test_blocks_are_found_with_their_output():
    text = "a\n```python\nx = 1\n```\n\n```text\n1\n```\n<!-- not run: a key -->\n```python\ny\n```\n```sh\nls\n```\n"
    assert blocks_of(text) == [Block(3, "x = 1\n", "1\n")]
