"""`botservice new` makes a bot that answers and passes its test, and `serve --reload` begins again where it changes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import botservice
from botservice import BotServiceError, default_llm
from botservice.cli.installation import InstallOrigin, origin_of_this
from botservice.llm.demo import DemoChatLLM

ROOT = Path(__file__).parents[2]
FILES = {
    *(".dockerignore", ".env.example", ".gitignore", "Dockerfile", "Procfile", "README.md"),
    *("bot.py", "requirements-dev.txt", "requirements.txt", "test_bot.py"),
}


@pytest.fixture
def bot(run, tmp_path):
    """The folder of a new bot."""
    code, said, _ = run("new", "bots/my-bot")
    assert code == 0
    assert "botservice serve --reload --open" in said
    assert "python -m pytest" in said
    return tmp_path / "bots" / "my-bot"


def python(folder, *arguments, typed=None):
    """Run Python in a folder, as a person does who has installed botservice."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "PYTEST_ADDOPTS")}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**kept, "PYTHONPATH": str(ROOT)},
        input=typed,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


@pytest.mark.parametrize(
    ("template", "more", "typed", "says"),
    [
        ("plain", set(), "roll 1\nroll sides=1\n", "My tool says: 1\nMy tool says: 1"),
        pytest.param(
            "tools", set(), "order pizza 2\n/allow\n", "My tool says: ordered: 2 pizza, 22 €", marks=pytest.mark.slow
        ),
        pytest.param(
            "database",
            {"shopping.py"},
            "add_item milk\n/allow\nshow_list\n",
            'My tool says: ["milk"]',
            marks=pytest.mark.slow,
        ),
    ],
)
@pytest.mark.slow
def test_every_template_passes_its_test_and_does_without_a_key_what_it_shows(
    run, tmp_path, template, more, typed, says
):
    assert run("new", "my-bot", "--template", template)[0] == 0
    bot = tmp_path / "my-bot"
    assert {each.name for each in bot.iterdir()} == FILES | more
    tested = python(bot, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    assert re.search(r"^\d passed", tested.stdout, re.MULTILINE), tested.stdout + tested.stderr
    assert not [*bot.glob("*.db")], "a test leaves nothing"
    talked = python(bot, "-m", "botservice", "chat", "--app", "bot:service", typed=typed)
    assert talked.stdout.strip().endswith(says), talked.stderr
    named = python(bot, "-c", "import bot; print(bot.service.name)")
    assert named.stdout == "my-bot\n", named.stderr
    assert "{{" not in "".join(each.read_text() for each in bot.iterdir() if each.is_file() and each.suffix != ".db")
    assert f"`{typed.splitlines()[0].split()[0]} " in (bot / "README.md").read_text()


@pytest.mark.parametrize("template", ["plain", "tools", "database"])
def test_a_made_folder_has_nothing_that_ruff_minds(run, tmp_path, template):
    assert run("new", "my-bot", "--template", template)[0] == 0
    bot = tmp_path / "my-bot"
    for command in (["check"], ["format", "--check"]):
        checked = python(bot, "-m", "ruff", *command, "--isolated", "--line-length=120", "--no-cache", ".")
        assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.slow
def test_what_its_procfile_says_can_be_run_from_its_folder(bot):
    commands = dict(line.split(": ", 1) for line in (bot / "Procfile").read_text().splitlines())
    assert commands["web"].endswith("python -m botservice serve --app bot:service")
    done = python(bot, *commands["release"].split()[1:])
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["1bot", "my bot", "bot!", "b" * 65])
def test_a_name_that_makes_no_bot_is_refused(run, tmp_path, name):
    code, _, said = run("new", name)
    assert code == 1
    assert "a bot's name is a letter" in said
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize(
    ("option", "says"),
    [
        ("--template=fancy", "--template must be plain, tools, database, not 'fancy'"),
        (
            "--deploy=fly,moon",
            "--deploy takes docker, heroku, render, fly, railway, kubernetes, systemd, with commas between them",
        ),
    ],
)
def test_a_choice_that_is_none_is_refused_and_nothing_is_made(run, tmp_path, option, says):
    code, _, said = run("new", "mine", option)
    assert code == 1
    assert says in said
    assert not (tmp_path / "mine").exists()


def test_a_path_that_cannot_be_made_is_said(run, tmp_path):
    (tmp_path / "file").write_text("")
    code, _, said = run("new", "file/mine")
    assert code == 1
    assert "file/mine cannot be written" in said


def test_what_is_there_stays_as_it_is(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bot.py").write_text("mine")
    code, _, said = run("new", "mine")
    assert code == 1
    assert "is there already" in said
    assert (tmp_path / "mine" / "bot.py").read_text() == "mine"


@pytest.mark.parametrize(
    ("recorded", "line", "can_be_deployed"),
    [
        (None, "botservice==1.2.3", True),
        (
            {"url": "https://example.com/bot.git", "vcs_info": {"vcs": "git", "commit_id": "abc123"}},
            "botservice @ git+https://example.com/bot.git@abc123",
            True,
        ),
        ({"url": "file:///home/me/botservice", "dir_info": {"editable": True}},
         "-e file:///home/me/botservice", False),
        ({"url": "file:///home/me/botservice", "dir_info": {}}, "botservice @ file:///home/me/botservice", False),
        ({"url": "https://example.com/botservice-1.2.3.whl", "archive_info": {}},
         "botservice @ https://example.com/botservice-1.2.3.whl", True),
    ],
)  # fmt: skip
def test_its_requirements_say_where_botservice_came_from(monkeypatch, tmp_path, recorded, line, can_be_deployed):
    installed = tmp_path / "botservice-1.2.3.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: botservice\nVersion: 1.2.3\n")
    if recorded is not None:
        (installed / "direct_url.json").write_text(json.dumps(recorded))
    monkeypatch.syspath_prepend(tmp_path)
    origin = origin_of_this()
    assert (origin.requirement, origin.is_elsewhere) == (line, can_be_deployed)


@pytest.mark.parametrize(
    ("origin", "said"),
    [
        (InstallOrigin("1.2.3"), botservice.__version__),
        (
            InstallOrigin("1.2.3", "https://example.com/bot.git", "git", "abc123def456789"),
            f"{botservice.__version__} (from https://example.com/bot.git, commit abc123def456)",
        ),
        (
            InstallOrigin("1.2.3", "file:///srv/botservice", is_editable=True),
            f"{botservice.__version__} (from file:///srv/botservice, editable)",
        ),
    ],
)
def test_the_version_says_where_it_came_from(origin, said):
    assert origin.describe() == said


def test_a_login_in_the_address_of_its_repository_is_not_repeated(monkeypatch, tmp_path):
    installed = tmp_path / "botservice-1.2.3.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: botservice\nVersion: 1.2.3\n")
    (installed / "direct_url.json").write_text('{"url": "https://me:hunter22@example.com/botservice.whl"}')
    monkeypatch.syspath_prepend(tmp_path)
    assert origin_of_this().requirement == "botservice @ https://example.com/botservice.whl"


def test_a_bot_without_a_model_gets_the_demo_script_and_one_with_a_model_gets_that(monkeypatch):
    assert isinstance(default_llm(), DemoChatLLM)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setenv("OPENAI_MODEL", "mine")
    monkeypatch.setenv("OPENAI_FALLBACK_MODELS", "other")
    assert [each.model for each in default_llm().llms] == ["mine", "other"]
    monkeypatch.setenv("MAX_TURNS", "none")
    with pytest.raises(BotServiceError, match="MAX_TURNS"):
        default_llm()


@pytest.mark.slow
def test_a_server_begins_anew_when_its_bot_changes_and_ends_with_who_started_it(bot):
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    command = [sys.executable, "-m", "botservice", "serve", "--app", "bot:service", "--reload", "--port", "0"]
    with subprocess.Popen(
        command, cwd=bot, env={**kept, "PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, text=True
    ) as server:
        try:
            first = _read_until(server.stdout, r"listening  127\.0\.0\.1:\d+")
            program = bot / "bot.py"
            program.write_text(f'print("changed")\n{program.read_text()}')
            again = _read_until(server.stdout, r"listening  127\.0\.0\.1:\d+")
            assert "changed" in again
            assert "changed" not in first
        finally:
            server.terminate()
        assert server.wait(60) == 0


def _read_until(stream, pattern):
    said = ""
    for line in stream:
        said += line
        if re.search(pattern, line):
            return said
    raise AssertionError(f"ended before {pattern!r}: {said}")
