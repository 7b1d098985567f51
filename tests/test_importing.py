"""What importing the package takes along: little at first, and all tables with any of them."""

import functools
import importlib
import json
import subprocess
import sys

import pytest

import botservice


@functools.cache
def python(code: str) -> object:
    """Return what a fresh process prints as JSON."""
    done = subprocess.run([sys.executable, "-c", f"import json\n{code}"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_command_line_begins_without_what_it_may_never_need() -> None:
    loaded = python("import sys, botservice.cli.main\nprint(json.dumps(list(sys.modules)))")
    assert isinstance(loaded, list)
    assert not {"sqlalchemy", "openai", "numpy", "starlette", "prompt_toolkit", "telegram", "slack_sdk"} & {*loaded}


def test_every_name_that_the_package_offers_is_there() -> None:
    for name in botservice.__all__:
        assert getattr(botservice, name) is not None
    assert {*botservice.__all__} <= {*dir(botservice)}
    with pytest.raises(AttributeError, match="no attribute 'Nonsense'"):
        _ = botservice.Nonsense


def test_a_name_is_not_hidden_by_a_module_of_the_same_name() -> None:
    importlib.import_module("botservice.storage")
    assert callable(botservice.progress)
    assert callable(botservice.tool)


@pytest.mark.parametrize("first", ["botservice.storage.orphans", "botservice.storage.tables.people"])
def test_all_tables_are_known_as_soon_as_one_is(first: str) -> None:
    """Forgetting goes through all that are known: one that nobody had imported yet would be left out."""
    count = "from botservice.storage.tables.metadata import metadata\nprint(len(metadata.tables))"
    assert python(f"import {first}\n{count}") == python(f"import botservice.serving, botservice.cli.doctor\n{count}")
