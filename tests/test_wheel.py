"""The wheel that people install: what is in it, and that it works without this folder."""

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from proving.test_prove import SHORT, check_table
from proving.test_prove import run as prove

ROOT = Path(__file__).parents[1]

USE = """
import asyncio, pathlib, sys
import botservice, transports
from botservice import AgentContext, Storage

async def main():
    for url in sys.argv[1:]:
        await use(url)

async def use(url):
    async with Storage.open(url, migrate=True) as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
        await context.chat_history.append_user_message("My dog is called Rex")
        hits = await context.chat_history.search("what is my pet called?")
        print(pathlib.Path(botservice.__file__).parent.parent, hits[0].message.text)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this folder."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A folder with what the wheel installs, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    return folder


def run(installed, folder, *arguments):
    """Run Python from the installed wheel, with the libraries of this environment."""
    libraries = [path for name in ("purelib", "platlib") if (path := sysconfig.get_path(name))]
    code = "import sys; sys.path[:0] = [{!r}]; sys.path += {!r}; {}"
    bootstrap = code.format(
        str(installed), libraries, "import runpy; runpy.run_path(sys.argv.pop(1), run_name='__main__')"
    )
    script = folder / "use.py"
    script.write_text(USE)
    return subprocess.run(
        [sys.executable, "-I", "-S", "-c", bootstrap, str(script), *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_but_the_two_packages_is_in_the_wheel(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.partition("/")[0] for name in names if ".dist-info/" not in name} == {"botservice", "transports"}
    assert [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".db", ".env"))] == []


def test_everything_that_is_no_code_is_in_the_wheel_too(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    known = subprocess.run(
        ["git", "ls-files", "botservice", "transports"], cwd=ROOT, capture_output=True, text=True, check=False
    ).stdout.split()
    assert [name for name in known if name not in names and (ROOT / name).exists()] == []
    assert "botservice/py.typed" in names
    assert any(name.startswith("botservice/storage/migrations/versions/0100_") for name in names)


@pytest.mark.slow
def test_an_installed_wheel_makes_its_tables_and_works(installed, tmp_path, own_postgres_url):
    done = run(installed, tmp_path, f"sqlite:///{tmp_path / 'bot.db'}", own_postgres_url)
    assert done.stdout.splitlines() == [f"{installed} My dog is called Rex"] * 2, done.stderr


def test_the_wheel_brings_the_command(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith("entry_points.txt")]
        assert "botservice = botservice.__main__:main" in archive.read(name).decode()


@pytest.mark.slow
def test_an_installed_wheel_proves_on_sqlite_that_it_loses_nothing_and_leaves_nothing(installed, tmp_path):
    unused = {"OPENAI_API_KEY": "none is used", "TELEGRAM_BOT_TOKEN": "no token", "DATABASE_URL": "nowhere"}
    done = prove(tmp_path, *SHORT, PYTHONPATH=str(installed), **unused)
    check_table(done)
    assert "Nothing was lost" in done.stdout
    assert list(tmp_path.iterdir()) == []
    assert "\r" not in done.stderr
