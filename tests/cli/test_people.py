"""What a person is owed, on the command line: an archive, forgetting, and files that are encrypted."""

import json
import zipfile
from pathlib import Path

import pytest
from cli.conftest import Run


@pytest.fixture
def talked(run: Run) -> None:
    """A person told the demo two things on the terminal."""
    assert run("chat", typed=b"Please remember that I am allergic to nuts\nI like tea\n")[0] == 0


@pytest.mark.usefixtures("talked")
def test_a_persons_archive_holds_pages_and_data(run: Run, tmp_path: Path) -> None:
    assert run("export", "--person", "terminal:default", "--archive", "mine.zip")[1] == "mine.zip is written\n"
    archive = zipfile.ZipFile(tmp_path / "mine.zip")
    data = json.loads(archive.read("data.json"))
    assert [fact["text"] for fact in data["facts"]] == ["I am allergic to nuts"]
    assert "I am allergic to nuts" in archive.read("about-you.md").decode()
    code, _, said = run("export", "1", "--archive", "x.zip")
    assert code == 1
    assert "--archive is for a person" in said


@pytest.mark.usefixtures("talked")
def test_an_archive_never_takes_the_place_of_a_file(run: Run) -> None:
    Path("mine.zip").write_text("something else")
    Path("folder").mkdir()
    for file in ("mine.zip", "folder"):
        code, said, error = run("export", "--person", "terminal:default", "--archive", file)
        assert (code, said) == (1, "")
        assert error == f"botservice: {file} exists already: name a file that does not\n"
    assert Path("mine.zip").read_text() == "something else"


@pytest.mark.usefixtures("talked")
@pytest.mark.parametrize(
    ("file", "why"),
    [
        ("nowhere/mine.zip", "No such file or directory"),
        ("bot_of_a_test.py/mine.zip", "Not a directory"),
        ("x" * 300, "File name too long"),
        ("/dev/full", "No space left on device"),
    ],
)
def test_an_archive_or_a_copy_that_cannot_be_written_is_refused_in_a_line(run: Run, file: str, why: str) -> None:
    Path("bot_of_a_test.py").touch()
    code, said, error = run("export", "--person", "terminal:default", "--archive", file)
    assert (code, said) == (1, "")
    assert error == f"botservice: cannot write {file}: {why}\n"
    code, said, error = run("backup", file)
    assert (code, said, len(error.splitlines())) == (1, "", 1)
    assert error.startswith("botservice: ")
    assert list(Path.cwd().glob("*.partial")) == []


@pytest.mark.usefixtures("talked")
def test_a_forgotten_person_has_left_the_files(run: Run, tmp_path: Path) -> None:
    assert "1 conversation of theirs alone" in run("forget", "--person", "terminal:default", "--yes")[1]
    assert not [each for each in tmp_path.glob("bot.db*") if b"allergic" in each.read_bytes()]
    code, _, said = run("forget", "--person", "terminal:default", "--yes")
    assert code == 1
    assert "no message of terminal:default" in said


@pytest.mark.usefixtures("talked")
def test_files_are_encrypted_where_there_is_a_key(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, _, said = run("encrypt")
    assert code == 1
    assert "set ENCRYPTION_KEY first" in said
    monkeypatch.setenv("ENCRYPTION_KEY", "a key of thirty-two characters or more")
    code, said, problem = run("encrypt")
    assert (code, problem) == (0, "")
    assert said.endswith(("file is encrypted with the first key\n", "files are encrypted with the first key\n"))
    assert run("replay", "1")[0] == 0, "what is encrypted can be read"
