"""Each row of the table of providers in docs/models.md says how it was checked, and is backed by a test."""

import json
import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
DATA: Final = ROOT / "tests" / "data"
REAL: Final = {"LiteLLM proxy": "test_litellm_proxy.py", "llama.cpp": "test_llama_cpp.py"}
STAND_IN: Final = "OpenAI"  # every test without another server
WAYS: Final = re.compile(r"\bthe real (?:proxy|server)\b|\bdocumentation\b|\breports\b")


def sources(file: str) -> set[str]:
    """Return the words of the names of servers that a file of recordings has lines from."""
    lines = (DATA / file).read_text().splitlines()
    return {word for line in lines for word in re.split(r"[\s,]+", str(json.loads(line).get("from", "")))}


def rows() -> list[list[str]]:
    page = (ROOT / "docs" / "models.md").read_text()
    table = page[page.index("| provider |") :].split("\n\n")[0].splitlines()
    assert table[0].endswith("| how it was checked |")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]


def names(provider: str) -> list[str]:
    """Return the providers of a row by the words that recordings call them."""
    return [
        re.split(r"[ (]", each)[0]
        for each in provider.replace(", OpenAI-compatible", "").replace(", v1 API", "").split(", ")
    ]


@pytest.mark.parametrize("row", rows(), ids=[row[0] for row in rows()])
def test_a_row_says_how_it_was_checked_and_a_test_backs_it(row: list[str]) -> None:
    provider, *cells, how = row
    assert len(cells) == 4
    assert all(cells)
    assert WAYS.search(how), "say whether it was a real server, or documentation and reports"
    if provider in REAL:
        assert "the real" in how
        assert (ROOT / "tests" / "llm" / REAL[provider]).is_file()
    else:
        assert "the real" not in how, "no test runs against it"
    recorded = {"recorded answers": sources("answers/table.jsonl"), "recorded errors": sources("model_errors.jsonl")}
    known = set().union(*recorded.values())
    for each in names(provider):
        assert each in known or provider in (*REAL, STAND_IN), f"{each}: no recording is from there"
    for what, found in recorded.items():
        if what in how:
            assert any(each in found for each in names(provider)), f"no {what} are from there"


def test_the_real_servers_are_rows_of_the_table() -> None:
    assert REAL.keys() <= {row[0] for row in rows()}
