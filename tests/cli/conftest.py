"""Running commands in a folder of their own, with a database of their own."""

import io
import logging
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from botservice.cli.main import main
from botservice.config.settings import Settings

Run = Callable[..., tuple[int, str, str]]


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
