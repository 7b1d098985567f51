"""What importing the package takes along: little at first, and all tables with any of them."""

import functools
import importlib
import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import botservice
from botservice.config.settings import Settings
from botservice.core.loading import loading_alongside

_ROOT = Path(__file__).parents[1]
# A server from its command until it is ready; it ends by a signal, as it does elsewhere.
_SERVE = """
import asyncio, json, os, signal, sys
from botservice.cli import main
from botservice.server import serving

def end(settings):
    with open("loaded.json", "w") as file:
        json.dump(list(sys.modules), file)
    os.kill(os.getpid(), signal.SIGTERM)

settings = main.load_settings()
asyncio.run(serving.serve(settings, main.build_service(settings, None), on_ready=end))
"""

# Two who search first, at once; NumPy is loaded as soon as the event loop says so.
_TWO_FIRST_SEARCHES = """
import asyncio, sys, threading
from botservice.history.chat_history import search_indexes
from botservice.storage.database import Storage

begun, may_end = threading.Event(), threading.Event()
outcome = []

class Slow:
    def find_spec(self, name, path, target=None):
        if name == "numpy":
            begun.set()
            outcome.append("the event loop went on" if may_end.wait(10) else "the event loop stood still")

async def search():
    storage = Storage.open("sqlite:///unused.db")
    first = asyncio.create_task(search_indexes(storage))
    await asyncio.to_thread(begun.wait)
    second = asyncio.create_task(search_indexes(storage))
    await asyncio.sleep(0)
    may_end.set()
    assert await first is await second

sys.meta_path.insert(0, Slow())
asyncio.run(search())
print(json.dumps(outcome[0]))
"""


@functools.cache
def python(code: str) -> object:
    """Return what a fresh process prints as JSON."""
    done = subprocess.run([sys.executable, "-c", f"import json\n{code}"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_the_command_line_begins_without_what_it_may_never_need() -> None:
    loaded = python("import sys, botservice.cli.main\nprint(json.dumps(list(sys.modules)))")
    assert isinstance(loaded, list)
    assert not {"sqlalchemy", "openai", "numpy", "starlette", "prompt_toolkit", "telegram", "slack_sdk", "pydantic"} & {
        *loaded
    }


def test_the_inspector_loads_nothing_that_only_terminals_and_cases_need() -> None:
    loaded = python("import sys, transports.web.inspector_routes\nprint(json.dumps(list(sys.modules)))")
    assert isinstance(loaded, list)
    assert not {"rich", "yaml", "botservice.devtools.evaluation"} & {*loaded}


@pytest.mark.parametrize("model", [{}, {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_MODEL": "none"}])
@pytest.mark.slow
def test_a_server_is_ready_without_the_clients_of_what_is_off_or_not_yet_asked(
    tmp_path: Path, model: dict[str, str]
) -> None:
    off = {name.upper() for name in Settings.model_fields}
    environment = {name: value for name, value in os.environ.items() if name.upper() not in off} | model
    environment |= {"DATABASE_URL": "sqlite:///bot.db", "HOST": "127.0.0.1", "PORT": "0", "PYTHONPATH": str(_ROOT)}
    command = [sys.executable, "-c", _SERVE]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    loaded = {*json.loads((tmp_path / "loaded.json").read_text())}
    assert {"uvicorn", "transports.web.app"} <= loaded
    of_what_is_off = {"mcp", "openai", "telegram", "slack_bolt", "slack_sdk", "prompt_toolkit", "httpx", "cryptography"}
    assert of_what_is_off & loaded == set()
    of_what_nobody_asked_for = {"jinja2", "rich", "botservice.devtools", "botservice.mcp", "numpy", "stopwordsiso"}
    assert of_what_nobody_asked_for & loaded == set()


def test_garbage_is_looked_for_once_a_command_works_and_not_among_what_was_loaded() -> None:
    seen = python(
        "import gc\nfrom botservice.cli.console import run\ngc.disable()\n"
        "async def look(): return gc.isenabled(), gc.get_freeze_count() > 10_000\n"
        "print(json.dumps(run(look())))"
    )
    assert seen == [True, True]


def test_numpy_is_imported_before_its_parts() -> None:
    """Two threads that begin with NumPy and with a part of it wait for each other, and one gets half of it."""
    first = {
        path: re.search(r"^(?:import|from) (numpy[.\w]*)", path.read_text(), re.MULTILINE)
        for path in _ROOT.glob("botservice/**/*.py")
    }
    assert {path: found[1] for path, found in first.items() if found and found[1] != "numpy"} == {}


@pytest.mark.slow
def test_nobody_waits_for_the_event_loop_while_what_searches_is_loaded() -> None:
    assert python(_TWO_FIRST_SEARCHES) == "the event loop went on"


def test_what_only_messages_need_is_loaded_beside_a_service_that_runs() -> None:
    loaded = threading.Event()
    with loading_alongside(loaded.set):
        assert loaded.wait(60)


def test_every_name_that_the_package_offers_is_there() -> None:
    for name in botservice.__all__:
        assert getattr(botservice, name) is not None
    assert {*botservice.__all__} <= {*dir(botservice)}
    with pytest.raises(AttributeError, match="attribute Nonsense"):
        _ = botservice.Nonsense


def test_a_name_is_not_hidden_by_a_module_of_the_same_name() -> None:
    importlib.import_module("botservice.storage")
    assert callable(botservice.progress)
    assert callable(botservice.tool)


@pytest.mark.slow
def test_all_tables_are_known_as_soon_as_one_is() -> None:
    """Forgetting goes through all that are known: one that nobody had imported yet would be left out."""
    count = "from botservice.storage.tables.columns import metadata\nprint(len(metadata.tables))"
    everything = python(f"import botservice.server.serving, botservice.cli.doctor\n{count}")
    assert python(f"import botservice.storage.blobs\n{count}") == everything
    assert python(f"import botservice.storage.tables.people\n{count}") == everything
