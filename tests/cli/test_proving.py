"""Databases that `botservice prove` does not take: they stay as they are."""

import tempfile
from pathlib import Path

import pytest
from cli.conftest import Run
from proving.test_prove import KEPT, SHORT, execute


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of what is not to stay."""
    folder = tmp_path / "left"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_database_with_tables_is_refused_and_stays_as_it_is(run: Run, left: Path, own_postgres_url: str) -> None:
    execute(own_postgres_url, "CREATE TABLE theirs (id int)", "INSERT INTO theirs VALUES (1)")
    code, _, said = run("prove", *SHORT, "--database", own_postgres_url)
    assert code == 1
    assert "--database is not empty" in said
    assert execute(own_postgres_url, "SELECT id FROM theirs") == [1]
    assert execute(own_postgres_url, KEPT) == ["theirs"]
    assert list(left.iterdir()) == []


@pytest.mark.parametrize("url", ["sqlite:///here.db", "nonsense"])
def test_a_database_that_is_no_postgres_is_refused(run: Run, left: Path, url: str) -> None:
    code, _, said = run("prove", *SHORT, "--database", url)
    assert code == 1
    assert "--database must be postgresql://" in said
    assert list(left.iterdir()) == []
