"""Marked tests are found in a part of the files: those that speak of the mark, and a mark elsewhere is refused."""

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
