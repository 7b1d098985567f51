"""What docs/architecture.md says of the code is so."""

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from botservice.storage.tables.columns import metadata

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
NAMED = sorted(set(re.findall(r"`([\w./]+(?:\.py|\.md|\.toml|/))`", PAGE)))


FILES = [
    f"/{path.relative_to(ROOT)}" for package in ("botservice", "transports") for path in (ROOT / package).rglob("*.py")
]


def stands(path):
    """Return whether a path is there, written from the root or only from the package that the sentence is about."""
    return (
        (ROOT / path).exists()
        or (ROOT / "botservice" / path).is_dir()
        or any(file.endswith(f"/{path}") for file in FILES)
    )


@pytest.mark.parametrize("path", NAMED)
def test_a_file_that_is_named_is_there(path):
    assert stands(path)


def test_a_file_that_a_comment_names_is_there():
    named = {
        (file, name)
        for file in FILES
        for name in re.findall(r"`([\w./]+\.py)`", (ROOT / file.removeprefix("/")).read_text())
    }
    assert named
    assert sorted(each for each in named if not stands(each[1])) == []


def test_files_are_named_at_all():
    assert len(NAMED) > 50


def test_every_table_has_an_owner_on_the_page():
    rows = PAGE.partition("## Table owners")[2].partition("\n## ")[0]
    named = re.findall(r"`(\w+\*?)`", rows)
    families = tuple(name.removesuffix("*") for name in named if name.endswith("*"))
    missing = [name for name in metadata.tables if name not in named and not name.startswith(families)]
    assert missing == [], "name who owns them in docs/architecture.md"


def test_the_page_can_be_read_in_one_sitting():
    assert len(PAGE.splitlines()) <= 100


def test_no_name_stands_for_two_classes():
    trees = [ast.parse((ROOT / file.removeprefix("/")).read_text()) for file in FILES if "/migrations/" not in file]
    names = Counter(node.name for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    assert names["AgentContext"] == 1
    assert [name for name, count in names.items() if count > 1] == []
