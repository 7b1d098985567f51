"""Debian's PostgreSQL, because that of the wheel has no TLS; tests skip where the package is not installed."""

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

_PATIENCE_SECONDS = 60
_OWNER = "postgres"  # whom the package makes: the server refuses to run as root

_FOUND = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
is_installed = bool(_FOUND)
needs_debian_postgres = pytest.mark.skipif(not is_installed, reason="PostgreSQL is not installed (Debian: postgresql)")


@contextlib.contextmanager
def debian_postgres(prefix: str, *, files: Sequence[tuple[str, bytes]] = (), **settings: str) -> Iterator[str]:
    """Yield the address of a server of its own, by a socket, with its superuser; end it and delete its files.

    Args:
        files: Names and contents of what is to stand in its folder, such as a certificate, readable for it alone.
        settings: Further ones, such as ssl="on"; with a port it listens at 127.0.0.1 as well.
    """
    programs = _FOUND[-1].parent
    folder = Path(tempfile.mkdtemp(prefix=prefix))  # not below pytest's own, which are root's
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        owner = pwd.getpwnam(_OWNER)
        os.chown(folder, owner.pw_uid, owner.pw_gid)
        user = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    data = folder / "data"
    make = [
        str(programs / "initdb"),
        "-D",
        str(data),
        "-U",
        "postgres",
        "-A",
        "trust",
        "-E",
        "UTF8",
        "--locale=C",
        "-N",
    ]
    subprocess.run(make, check=True, stdout=subprocess.DEVNULL, cwd=folder, **user)
    for name, content in files:
        (data / name).write_bytes(content)
        (data / name).chmod(0o600)
        if user:
            os.chown(data / name, user["user"], user["group"])
    named = {"listen_addresses": "127.0.0.1" if "port" in settings else "", **settings}
    options = [part for name, value in named.items() for part in ("-c", f"{name}={value}")]
    command = [str(programs / "postgres"), "-D", str(data), "-k", str(folder), *options]
    log = folder / "log"
    with log.open("wb") as said, subprocess.Popen(command, stdout=said, stderr=said, cwd=folder, **user) as server:
        try:
            port = settings.get("port", "5432")
            _wait_for(folder / f".s.PGSQL.{port}", server, log)
            yield f"postgresql://postgres:@/postgres?host={folder}" + (f"&port={port}" if "port" in settings else "")
        finally:
            server.send_signal(signal.SIGINT)
            server.wait()
    shutil.rmtree(folder, ignore_errors=True)


def _wait_for(path: Path, server: "subprocess.Popen[bytes]", log: Path) -> None:
    give_up_at = time.monotonic() + _PATIENCE_SECONDS
    while True:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            return
        assert server.poll() is None, log.read_text()
        assert time.monotonic() < give_up_at, log.read_text()
        time.sleep(0.02)
