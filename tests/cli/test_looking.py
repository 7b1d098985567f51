"""Looking at what is kept, giving it out, and forgetting it."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the database of the first who talked is kept for the others."""
    return tmp_path_factory.mktemp("talked") / "bot.db"


@pytest.fixture
def talked(run: Run, tmp_path: Path, kept: Path) -> None:
    database = tmp_path / "bot.db"
    if kept.exists():
        shutil.copyfile(kept, database)
        return
    run("chat", typed=b"My dog is called Rex\nWhat time is it?\n")
    run("chat", "--session", "other", typed=b"My cat is called Tom\n")
    shutil.copyfile(database, kept)


@pytest.mark.usefixtures("talked")
def test_contexts_are_listed_the_newest_first(run: Run) -> None:
    first, second = run("contexts")[1].splitlines()
    assert first.split() == ["2", "2", "messages", *first.split()[3:5], "transport=terminal", "session_id=other"]
    assert second.split()[0] == "1"
    assert [json.loads(line)["messages"] for line in run("contexts", "--json")[1].splitlines()] == [2, 4]


@pytest.mark.usefixtures("talked")
@pytest.mark.parametrize(
    "address", ["1", "terminal:default", "session_id=default", "transport=terminal session_id=default"]
)
def test_a_conversation_is_named_by_its_number_or_its_keys(run: Run, address: str) -> None:
    code, said, _ = run("replay", address)
    assert code == 0
    assert "My dog is called Rex" in said
    assert "current_time" in said
    assert "Tom" not in said


@pytest.mark.usefixtures("talked")
def test_one_turn_is_replayed_in_detail_and_as_json(run: Run) -> None:
    turns = json.loads(run("replay", "1", "--json")[1])
    assert [turn["status"] for turn in turns] == ["done", "done"]
    (second,) = json.loads(run("replay", "1", "--turn", str(turns[1]["turn"]), "--json")[1])
    assert second == turns[1]
    said = run("replay", "1", "--turn", str(turns[1]["turn"]), "--detailed")[1]
    assert "What time is it?" in said
    assert "Rex" not in said.partition("Prompt")[0]


@pytest.mark.usefixtures("talked")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["replay", "77"], "there is no context 77"),
        (["replay", "1", "--turn", "77"], "context 1 has no turn 77"),
        (["replay", "telegram:1"], "no context is meant by 'telegram:1'"),
        (["replay", "transport=terminal"], "more than one context: 1, 2"),
        (["export"], "say which"),
        (["export", "1", "--person", "terminal:default"], "say which"),
        (["export", "--person", "me"], "must be platform:id"),
        (["export", "--person", "terminal:nobody"], "no message of terminal:nobody"),
        (["forget", "77", "--yes"], "there is no context 77"),
        (["forget", "77"], "there is no context 77"),
        (["export", "99999999999999999999"], "there is no context 99999999999999999999"),
        (["forget", "99999999999999999999", "--yes"], "there is no context 99999999999999999999"),
        (["replay", "9" * 5000], "there is no context 999"),
        (["forget", "--yes"], "say which"),
    ],
)
def test_what_is_not_there_is_said(run: Run, arguments: list[str], says: str) -> None:
    code, said, error = run(*arguments)
    assert (code, said) == (1, "")
    assert says in error


@pytest.mark.usefixtures("talked")
def test_a_conversation_is_exported_whole(run: Run) -> None:
    exported = json.loads(run("export", "1")[1])
    assert exported["context"]["keys"] == {"transport": "terminal", "session_id": "default"}
    assert [message["role"] for message in exported["messages"]] == ["user", "assistant"] * 2
    assert len(exported["turns"]) == 2


@pytest.mark.usefixtures("talked")
def test_a_person_is_exported_from_every_conversation(run: Run) -> None:
    exported = json.loads(run("export", "--person", "terminal:default")[1])
    assert [message["text"] for message in exported["messages"]] == ["My dog is called Rex", "What time is it?"]


@pytest.mark.usefixtures("talked")
def test_a_conversation_is_forgotten_only_by_whoever_says_yes(run: Run) -> None:
    assert run("forget", "1", typed=b"n\n")[0] == 1
    assert len(run("contexts")[1].splitlines()) == 2
    assert run("forget", "1", typed=b"y\n")[0] == 0
    assert "Rex" not in run("export", "2")[1]
    assert run("forget", "session_id=other", "--yes")[0] == 0
    assert run("contexts")[1] == ""
