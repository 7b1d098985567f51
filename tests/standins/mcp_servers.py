"""MCP servers on this machine: scripts that misbehave, and real ones by HTTP."""

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SCRIPT = Path(__file__).with_name("mcp_script.py")
ASKING = Path(__file__).with_name("mcp_asking.py")
TASKS = Path(__file__).with_name("mcp_tasks.py")
# The server of a package that is not ours, by the other of the two ways.
TIME_BY_HTTP = (
    "from mcp_server_time.server import create_server\ncreate_server('UTC').run('streamable-http', port={port})"
)
_SECONDS = 60.0


def script(behaviour: str, folder: Path | None = None, **more: Any) -> dict[str, Any]:
    """Return what stands in mcp.json for a server of the stand-in."""
    args = [str(SCRIPT), behaviour, *([] if folder is None else [str(folder)])]
    # By way of `env`: a Python below another user's home can be run here, but not looked at.
    return {"command": "env", "args": [sys.executable, "-S", *args], **more}


def asking(revision: str, folder: Path, **more: Any) -> dict[str, Any]:
    """Return what stands in mcp.json for a server of the `mcp` package that asks, of a "new" or an "old" revision."""
    return {"command": sys.executable, "args": [str(ASKING), revision, str(folder)], "approval": "never", **more}


def making_tasks(folder: Path, **more: Any) -> dict[str, Any]:
    """Return what stands in mcp.json for a server of the `mcp` package that makes tasks of its calls."""
    return {"command": sys.executable, "args": [str(TASKS), str(folder)], "approval": "never", **more}


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


@contextlib.contextmanager
def running(code: str, port: int, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run Python that serves on a port until the block is left."""
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until and process.poll() is None:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait()
