"""The commands, as somebody types them; what can go wrong is said in a line, and the exit code tells."""

import io
import json
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import botservice
from botservice.cli import main
from botservice.settings import Settings

Run = Callable[..., tuple[int, str, str]]

OWN = """
from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
agent = FunctionsBasedAgent(llm=ScriptedChatLLM(lambda prompt: "you said " + prompt[-1]["content"]), search_k=0)
service = AgentService(agent{storage})
"""


@pytest.fixture(autouse=True)
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, sqlite_url: str) -> Iterator[None]:
    """Each test has a folder, a database and the root logger to itself."""
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", sqlite_url)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path / "no-encodings"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    root, known = logging.getLogger(), set(sys.modules)
    handlers, level = list(root.handlers), root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name in set(sys.modules) - known:
        if name.startswith("bot_of_a_test"):
            del sys.modules[name]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """What runs a command and returns its exit code, its output and its errors."""

    def run(*arguments: str, typed: bytes = b"") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["botservice", *arguments])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(typed), encoding="utf-8"))
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def test_help_names_every_command(run: Run) -> None:
    code, said, _ = run("--help")
    assert code == 0
    assert all(
        name in said for name in ("serve", "chat", "migrate", "contexts", "replay", "export", "forget", "doctor")
    )


@pytest.mark.parametrize("command", ["serve", "chat", "migrate", "contexts", "replay", "export", "forget", "doctor"])
def test_every_command_has_help(run: Run, command: str) -> None:
    assert run(command, "--help")[0] == 0


def test_the_version_is_the_package_s(run: Run) -> None:
    assert run("--version") == (0, f"botservice {botservice.__version__}\n", "")


def test_an_unknown_command_or_option_is_a_wrong_command_line(run: Run) -> None:
    assert run("dance")[0] == 2
    assert run("chat", "--loud")[0] == 2


def test_wrong_settings_are_named_all_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "http")
    monkeypatch.setenv("MAX_STEPS", "-1")
    for command in (["serve"], ["chat"], ["doctor"], ["contexts"]):
        code, said, error = run(*command)
        assert (code, said) == (1, "")
        assert error.startswith("botservice: PORT must be ")
        assert "\nMAX_STEPS must be " in error


# chat


def test_piped_input_is_answered_line_by_line(run: Run) -> None:
    Path("bot_of_a_test.py").write_text(OWN.format(storage=""))
    code, said, error = run(
        "chat", "--app", "bot_of_a_test:service", typed="hi\n\n   \nwörld 🎉\n\xff and last".encode()
    )
    assert (code, error) == (0, "")
    assert said == "you said hi\nyou said wörld 🎉\nyou said ÿ and last\n"


def test_input_that_is_no_text_is_answered_all_the_same(run: Run) -> None:
    Path("bot_of_a_test.py").write_text(OWN.format(storage=""))
    code, said, _ = run("chat", "--app", "bot_of_a_test:service", typed=b"\xff\xfe\x00\nlast")
    assert code == 0
    assert said.splitlines()[1] == "you said last"


def test_no_input_is_no_answer(run: Run) -> None:
    assert run("chat") == (0, "", "")


def test_without_a_model_the_demo_answers_and_remembers(run: Run) -> None:
    code, said, _ = run("chat", typed=b"My dog is called Rex\nWhat is my dog called?\n")
    assert code == 0
    assert "demo" in said
    assert "“My dog is called Rex”" in said.splitlines()[-1]


def test_sessions_remember_apart(run: Run) -> None:
    run("chat", "--session", "a", typed=b"My dog is called Rex\n")
    assert "not told me" in run("chat", "--session", "b", typed=b"What is my dog called?\n")[1]
    assert "Rex" in run("chat", "--session", "a", typed=b"What is my dog called?\n")[1]


def test_a_service_with_a_storage_of_its_own_keeps_it(run: Run) -> None:
    Path("bot_of_a_test.py").write_text(OWN.format(storage=', Storage.open("sqlite:///own.db")'))
    assert run("chat", "--app", "bot_of_a_test:service", typed=b"hi")[1] == "you said hi\n"
    assert Path("own.db").exists()
    assert run("contexts")[1] == ""


def test_a_model_that_fails_is_apologised_for(run: Run) -> None:
    Path("bot_of_a_test.py").write_text(
        "from botservice import *\n"
        "def fail(prompt): raise LLMError('no', is_transient=False)\n"
        "service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM(fail), search_k=0))\n"
    )
    code, said, _ = run("chat", "--app", "bot_of_a_test:service", typed=b"hi\nagain\n")
    assert code == 0
    assert said.count("Sorry") == 2


def test_a_run_that_a_callback_stops_is_not_waited_for_for_ever(run: Run) -> None:
    Path("bot_of_a_test.py").write_text(
        "from botservice import *\n"
        "def stop(step, agent): agent.interrupt()\n"
        "add = Tool(lambda: 1, name='add')\n"
        "llm = ScriptedChatLLM(lambda prompt: ToolCall('', 'add'))\n"
        "service = AgentService(FunctionsBasedAgent([add], llm, search_k=0), step_callbacks=[stop])\n"
    )
    assert run("chat", "--app", "bot_of_a_test:service", typed=b"hi\n") == (0, "(no answer)\n", "")


# --app


@pytest.mark.parametrize(
    ("name", "source", "says"),
    [
        ("bot_of_a_test", "", "must be module:service"),
        (":service", "", "must be module:service"),
        ("bot_of_a_test_missing:service", "", "there is no module bot_of_a_test_missing in "),
        ("bot_of_a_test.deeper:service", "", "there is no module bot_of_a_test.deeper in "),
        ("bot_of_a_test:service", "", "there is no service in bot_of_a_test"),
        ("bot_of_a_test:service", "service = 5", "must be an AgentService, not int"),
        ("bot_of_a_test:service", "import nosuchthing", "bot_of_a_test needs nosuchthing, which is not installed"),
        ("bot_of_a_test:service", "def (", "SyntaxError"),
        ("bot_of_a_test:service", "x = 1\nraise KeyError('x')", "KeyError: 'x' (bot_of_a_test.py, line 2)"),
        ("bot_of_a_test:service", "exit(3)", "SystemExit: 3"),
        ("bot_of_a_test:service", "import botservice\nbotservice.OpenAIChatLLM()", "OPENAI_API_KEY must be set"),
    ],
)
def test_a_service_that_cannot_be_loaded_is_said(run: Run, name: str, source: str, says: str) -> None:
    Path("bot_of_a_test.py").write_text(source)
    code, said, error = run("chat", "--app", name)
    assert (code, said) == (1, "")
    assert says in error
    assert "Traceback" not in error


# databases


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("sqlite:///no/such/folder/bot.db", "its folder does not exist"),
        ("sqlite:////proc/bot.db", "cannot open the database"),
        ("sqlite:////", "cannot open the database"),
        ("sqlite:///text.db", "file is not a database"),
        ("postgresql://user:hunter22@127.0.0.1:1/x", "postgresql://user:***@127.0.0.1:1/x"),
    ],
)
@pytest.mark.parametrize("command", ["chat", "migrate"])
def test_a_database_that_cannot_be_used_is_said(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str, url: str, says: str
) -> None:
    Path("text.db").write_text("this is a text and no database at all. " * 20)
    monkeypatch.setenv("DATABASE_URL", url)
    code, said, error = run(command)
    assert (code, said) == (1, "")
    assert says in error
    assert "hunter22" not in error
    assert "Traceback" not in error


def test_an_empty_database_is_not_made_by_looking(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "sqlite:///new.db")
    code, _, error = run("contexts")
    assert code == 1
    assert "botservice migrate" in error
    assert not Path("new.db").exists()
    assert run("migrate")[0] == 0
    assert run("contexts") == (0, "", "")


def test_a_postgres_without_tables_is_migrated_by_name_alone(
    run: Run, monkeypatch: pytest.MonkeyPatch, own_postgres_url: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", own_postgres_url)
    code, _, error = run("chat", typed=b"hi")
    assert code == 1
    assert "botservice migrate" in error
    assert run("migrate")[0] == 0
    assert "demo" in run("chat", typed=b"hello\n")[1]


def test_a_newer_database_is_left_alone(run: Run, tmp_path: Path) -> None:
    import sqlite3

    with sqlite3.connect(tmp_path / "bot.db") as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
    database.close()
    for command in ("chat", "contexts", "migrate"):
        code, _, error = run(command)
        assert code == 1
        assert "newer" in error


# looking, giving out, forgetting


@pytest.fixture
def talked(run: Run) -> None:
    run("chat", typed=b"My dog is called Rex\nWhat time is it?\n")
    run("chat", "--session", "other", typed=b"My cat is called Tom\n")


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
