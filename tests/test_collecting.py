"""Marked tests are found in a part of the files: those that speak of the mark, and a mark elsewhere is refused."""

import os
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

TESTS = Path(__file__).parent


@pytest.fixture
def conftest(request):
    """What decides which files are loaded."""
    return request.config.pluginmanager.get_plugin(str(TESTS / "conftest.py"))


@pytest.mark.parametrize(
    ("expression", "name", "is_left_out"),
    [
        ("slow or browser", "turns/test_plain_turn.py", True),
        ("slow or browser", "crash/test_kills.py", None),
        ("slow or browser", "transports/web/browser/test_chat.py", None),
        ("browser", "crash/test_kills.py", True),
        ("slow or browser", "conftest.py", None),
        ("not slow and not browser", "turns/test_plain_turn.py", None),
        ("slow or any_database", "turns/test_plain_turn.py", None),
        ("", "turns/test_plain_turn.py", None),
    ],
)
def test_a_file_is_left_out_where_it_cannot_hold_what_is_wanted(conftest, expression, name, is_left_out):
    wanted = SimpleNamespace(option=SimpleNamespace(markexpr=expression))
    assert conftest.pytest_ignore_collect(TESTS / name, wanted) is is_left_out


def test_a_mark_is_refused_where_its_file_does_not_speak_of_it(conftest):
    item = SimpleNamespace(
        path=TESTS / "turns" / "test_plain_turn.py",
        nodeid="one",
        fixturenames=["browser"],
        add_marker=lambda name: None,
        get_closest_marker=lambda name: name == "browser" or None,
    )
    with pytest.raises(pytest.UsageError, match="one is marked browser"):
        conftest.pytest_itemcollected(item)
    item.path = TESTS / "transports" / "web" / "browser" / "test_chat.py"
    conftest.pytest_itemcollected(item)


def test_the_environment_of_a_machine_is_not_that_of_tests() -> None:
    hostile = {
        "TERM": "dumb",
        "COLUMNS": "40",
        "NO_COLOR": "1",
        "FORCE_COLOR": "1",
        "LC_ALL": "C",
        "LANGUAGE": "de",
        "TZ": "Pacific/Kiritimati",
        "HTTP_PROXY": "http://127.0.0.1:9",
        "no_proxy": "*",
        "HOME": "/nonexistent",
        "OPENAI_BASE_URL": "http://127.0.0.1:9",
        "PORT": "none",
        "PYTEST_ADDOPTS": "-n 0 -p no:cacheprovider",
    }
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--db", "sqlite", "tests/test_collecting.py", "-k", "of_the_suite"],
        cwd=TESTS.parent,
        env={"PATH": os.environ["PATH"], **hostile},
        umask=0o077,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout


def test_this_is_the_environment_of_the_suite(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o644
    child = subprocess.run(["env"], capture_output=True, text=True, check=True).stdout.splitlines()
    chosen = dict(line.split("=", 1) for line in child)
    assert not chosen.keys() & {
        "NO_COLOR",
        "FORCE_COLOR",
        "LANGUAGE",
        "HTTP_PROXY",
        "no_proxy",
        "OPENAI_BASE_URL",
        "PORT",
    }
    assert (chosen["COLUMNS"], chosen["LC_ALL"], chosen["TZ"], time.tzname[0]) == ("80", "C.UTF-8", "UTC", "UTC")
    # Not the home of who runs the tests; what browsers leave there stays there.
    assert Path(chosen["HOME"]).name.startswith("botservice-home-")
