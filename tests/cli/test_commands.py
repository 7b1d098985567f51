"""The commands, as a person types them; what can go wrong is said in a line, and the exit code tells."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

import botservice

Run = Callable[..., tuple[int, str, str]]

OWN = """
from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
agent = FunctionsBasedAgent(llm=ScriptedChatLLM(lambda prompt: "you said " + prompt[-1]["content"]), search_k=0)
service = AgentService(agent{storage})
"""


def test_help_names_every_command(run: Run) -> None:
    code, said, _ = run("--help")
    assert code == 0
    assert all(
        name in said for name in ("serve", "chat", "migrate", "contexts", "replay", "export", "forget", "doctor")
    )


@pytest.mark.parametrize(
    "command", ["serve", "chat", "migrate", "contexts", "replay", "export", "forget", "backup", "compact", "doctor"]
)
def test_every_command_has_help(run: Run, command: str) -> None:
    assert run(command, "--help")[0] == 0


def test_the_version_is_the_package_s(run: Run) -> None:
    code, said, error = run("--version")
    assert (code, error) == (0, "")
    assert said.split()[:2] == ["botservice", botservice.__version__]


def test_an_unknown_command_or_option_is_a_wrong_command_line(run: Run) -> None:
    assert run("dance")[0] == 2
    assert run("chat", "--loud")[0] == 2


def test_wrong_settings_are_named_all_at_once(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "http")
    monkeypatch.setenv("MAX_STEPS", "-1")
    for command in (["serve"], ["chat"], ["contexts"]):
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
        ("bot_of_a_test:service", "x = 1\nraise KeyError('x')", "KeyError: 'x' (bot_of_a_test.py:2)"),
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


# backup and compact


def test_a_database_is_copied_once(run: Run) -> None:
    run("chat", typed=b"My dog is called Rex\n")
    code, said, _ = run("backup", "copy.db")
    assert code == 0
    assert said.endswith("MiB, checked\n")
    code, _, error = run("backup", "copy.db")
    assert code == 1
    assert "exists already" in error


def test_a_postgres_is_copied_with_its_own_program(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://user:hunter22@host/x")
    code, _, error = run("backup", "copy.db")
    assert code == 1
    assert "pg_dump" in error
    assert "hunter22" not in error


def test_what_is_old_is_compacted_and_the_file_made_smaller(run: Run, tmp_path: Path) -> None:
    run("chat", typed=b"My dog is called Rex\nWhat is my dog called?\n")
    assert run("compact") == (0, "0 turns have lost their steps, 0 events are deleted\n", "")
    with sqlite3.connect(tmp_path / "bot.db") as database:
        for table, column in (("turns", "finished_at"), ("turns", "created_at"), ("events", "received_at")):
            database.execute(f"UPDATE {table} SET {column} = {column} - 31 * 86400 * 1000000")
    database.close()
    code, said, _ = run("compact", "--shrink")
    assert code == 0
    assert said.startswith("2 turns have lost their steps, 2 events are deleted; ")
    assert "Compacted on " in run("replay", "1")[1]
    assert "Rex" in run("export", "1")[1]


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
    assert f"{Path.cwd()}/new.db" in error
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
    with sqlite3.connect(tmp_path / "bot.db") as database:
        database.execute("UPDATE botservice_version SET version_num = '9999'")
        database.execute("UPDATE schema_compatibility SET oldest_version = '9998'")
    database.close()
    for command in ("chat", "contexts", "migrate"):
        code, _, error = run(command)
        assert code == 1
        assert "newer" in error


def test_usage_of_what_has_no_price_shows_no_sum_of_nothing(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("chat", typed=b"My dog is called Rex\n")[0] == 0
    said = run("usage")[1]
    assert "0.0000" not in said
    assert "PRICES" in said
