"""The threat model in docs/security.md: every chapter has a control, and every control names tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ROW = re.compile(r"^\| ((?:V|LLM|ASI)\d+) [^|]*\| ([^|]+)\| ([^|]+)\| ([^|]+)\| ([^|]+)\|$", re.MULTILINE)
_TEST = re.compile(r"`([a-z_/]+\.py)::(test_\w+)`")
ROWS = {found[1]: found for found in _ROW.finditer((ROOT / "docs" / "security.md").read_text())}


def test_every_chapter_and_every_risk_has_its_row() -> None:
    wanted = [f"V{n}" for n in range(1, 18)] + [f"{list_}{n:02}" for list_ in ("LLM", "ASI") for n in range(1, 11)]
    assert list(ROWS) == wanted


def test_every_control_names_a_test_or_says_whose_it_is() -> None:
    lacking = [name for name, row in ROWS.items() if not _TEST.search(row[5]) and not row[4].startswith("Not ours")]
    assert lacking == []


def test_every_test_that_is_named_is_there() -> None:
    named = [found.groups() for row in ROWS.values() for found in _TEST.finditer(row[5])]
    assert len(named) > len(ROWS)
    gone = [(path, test) for path, test in named if not _has(ROOT / "tests" / path, test)]
    assert gone == []


def _has(path: Path, test: str) -> bool:
    return path.is_file() and re.search(rf"^(?:async )?def {test}\(", path.read_text(), re.MULTILINE) is not None
