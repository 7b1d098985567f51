"""The real PgBouncer before a real Postgres, on loopback; tests that use it are skipped where it is not installed."""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import make_url

_PROGRAM = shutil.which("pgbouncer", path=os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"]))
_PATIENCE_SECONDS = 60

needs_pgbouncer = pytest.mark.skipif(_PROGRAM is None, reason="PgBouncer is not installed (Debian: pgbouncer)")


@contextlib.contextmanager
def pgbouncer(postgres: str, *, mode: str, size: int = 20, **more: str | int) -> Iterator[str]:
    """Yield the address of a pooler before the database at postgres, until the block is left.

    Args:
        mode: `pool_mode`: session, transaction or statement.
        size: `default_pool_size`.
        more: Further lines of its `[pgbouncer]` section.
    """
    assert _PROGRAM is not None
    url = make_url(postgres)
    folder = Path(tempfile.mkdtemp(prefix="botservice-pgbouncer-"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    lines = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "any",
        "pool_mode": mode,
        "default_pool_size": size,
        "max_client_conn": 200,
        "ignore_startup_parameters": "extra_float_digits",
        **more,
    }
    database = f"host={url.query['host']} port={url.query.get('port', 5432)} user={url.username}"
    text = "".join(f"{name} = {value}\n" for name, value in lines.items())
    (folder / "pgbouncer.ini").write_text(f"[databases]\n* = {database}\n[pgbouncer]\n{text}")
    command = [_PROGRAM, "-q", str(folder / "pgbouncer.ini")]
    if os.geteuid() == 0:  # which it refuses to run as
        owner = Path(str(url.query["host"])).owner()  # who may connect to that socket
        for path in (folder, folder / "pgbouncer.ini"):
            shutil.chown(path, owner)
        command[1:1] = ["-u", owner]
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _wait_for(port, process, folder / "log")
            yield f"postgresql://{url.username}@127.0.0.1:{port}/{url.database}"
        finally:
            process.kill()
    shutil.rmtree(folder, ignore_errors=True)


def _wait_for(port: int, process: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
            return
        assert process.poll() is None, log.read_text()
        assert time.monotonic() < give_up_at, log.read_text()
        time.sleep(0.01)
