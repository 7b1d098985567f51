"""`serve --open` opens the chat for whoever sits at a terminal, and does nothing anywhere else."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def write_browser(folder):
    """Write a browser that notes what it was to open, and says so to a pipe."""
    os.mkfifo(folder / "opened")
    browser = folder / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {folder / "opened"}\n')
    browser.chmod(0o755)
    return browser


def serve(folder, *options, **environment):
    kept = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "botservice", "serve", "--port", "0", *options]
    server = subprocess.Popen(
        command, cwd=folder, env={**kept, "PYTHONPATH": str(ROOT), **environment}, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    return server, ours


@pytest.mark.slow
def test_the_chat_is_opened_for_whoever_sits_at_a_terminal(tmp_path):
    server, terminal = serve(tmp_path, "--open", BROWSER=f"{write_browser(tmp_path)} %s")
    try:
        opened = (tmp_path / "opened").read_text().strip()
    finally:
        server.send_signal(signal.SIGTERM)
        assert server.wait(60) == 0
        os.close(terminal)
    assert opened.startswith("http://127.0.0.1:")
    assert opened.endswith("/")


@pytest.mark.parametrize(
    ("environment", "is_terminal"), [({}, False), ({"WATCHFILES_CHANGES": '[["modified", "bot.py"]]'}, True)]
)
def test_a_browser_is_opened_once_and_for_a_terminal_alone(tmp_path, environment, is_terminal):
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\ntouch {tmp_path / 'opened'}\n")
    browser.chmod(0o755)
    script = (
        "import threading\n"
        "from botservice.cli.serve_processes import open_page\nfrom botservice.config.settings import Settings\n"
        "open_page(Settings(_env_file=None, port=1))\n"
        "for each in threading.enumerate():\n    each is threading.current_thread() or each.join(60)\n"
    )
    output = pty.openpty() if is_terminal else None
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT), "BROWSER": f"{browser} %s", **environment},
        stdout=output[1] if output else subprocess.PIPE,
        check=False,
    )
    for end in output or ():
        os.close(end)
    assert done.returncode == 0
    assert not (tmp_path / "opened").exists()


def test_a_package_of_the_same_name_is_named_with_what_to_do(tmp_path):
    (tmp_path / "transports.py").write_text("x = 1\n")
    done = subprocess.run(
        [sys.executable, "-m", "botservice", "--version"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"botservice: {tmp_path / 'transports.py'} stands before botservice's own package of that name, transports: "
        "give yours another name\n"
    )
