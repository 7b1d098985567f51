"""What commands do where nobody can read what they say: their work, and never a traceback."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from cli.examining import free_port

pytestmark = pytest.mark.slow  # processes of their own


def in_shell(command: str, typed: bytes = b"") -> tuple[int, str]:
    """Run botservice in a shell, as `botservice COMMAND`, and return its exit code and its errors."""
    words = ["sh", "-c", f'exec "$0" -m botservice {command}', sys.executable]
    done = subprocess.run(words, input=typed, capture_output=True, timeout=120, check=False)
    return done.returncode, done.stderr.decode()


@pytest.mark.parametrize("command", ["migrate", "--version", "--help", "contexts", "backup copy.db", "doctor"])
def test_a_command_whose_output_is_closed_does_its_work_and_ends_well(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PORT", "0")
    assert in_shell(f"{command} >&-") == (0, "")
    assert Path("copy.db").exists() is command.startswith("backup")


def test_a_command_without_any_stream_does_its_work_and_what_is_wrong_shows_in_its_code() -> None:
    assert in_shell("backup copy.db <&- >&- 2>&-")[0] == 0
    assert Path("copy.db").read_bytes().startswith(b"SQLite format 3\0")
    assert in_shell("backup copy.db <&- >&- 2>&-")[0] == 1


def test_a_chat_whose_input_is_closed_has_nothing_to_answer() -> None:
    assert in_shell("chat <&-") == (0, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="only some systems have a disk that is full")
@pytest.mark.parametrize("command", ["migrate", "--version", "--help", "access", "doctor", "serve"])
def test_a_command_whose_output_finds_no_room_says_so_in_a_line(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PORT", "0")
    code, said = in_shell(f"{command} >/dev/full")
    assert (code, said) == (1, "botservice: the output cannot be written: No space left on device\n")


def test_a_service_goes_on_where_nobody_reads_what_it_says(tmp_path: Path) -> None:
    port = free_port()
    environment = {**os.environ, "DATABASE_URL": f"sqlite:///{tmp_path}/bot.db", "PORT": str(port), "OBSERVE": "off"}
    reader, writer = os.pipe()
    os.close(reader)
    words = [sys.executable, "-m", "botservice", "serve"]
    with subprocess.Popen(words, stdout=writer, stderr=subprocess.DEVNULL, cwd=tmp_path, env=environment) as process:
        os.close(writer)
        while process.poll() is None:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"http://127.0.0.1:{port}/readyz").is_success:
                    process.terminate()
                    break
        assert process.wait(timeout=60) == 0
