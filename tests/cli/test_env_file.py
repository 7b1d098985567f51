"""A line of the file of settings that cannot be read ends every command: nothing that a person set is left out."""

from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., tuple[int, str, str]]

UNREADABLE = [
    (b"ACCESS: allow\n", ".env, line 1 (ACCESS): cannot be read; write NAME=value"),
    (b"\n# who\n\n  access allow\n", ".env, line 4 (ACCESS): cannot be read; write NAME=value"),
    (b"\xef\xbb\xbfPORT=0\r\n\r\nPORT\r\n", ".env, line 3 (PORT): cannot be read; write NAME=value"),
    (b"PORT=0\nexport PORT\n", ".env, line 2 (PORT): cannot be read; write NAME=value"),
    (b'"ACCESS"=allow\n', ".env, line 1 (ACCESS): cannot be read; write NAME=value"),
    (b"- ACCESS=allow\n", ".env, line 1: cannot be read; write NAME=value"),
    (b"OWN_KEY\n", ".env, line 1: cannot be read; write NAME=value"),
    (b'ADMIN_TOKEN="aaaa\nACCESS=allow\n', ".env, line 1 (ADMIN_TOKEN): cannot be read; a quote is not closed, or"),
    (b"PORT=0\nADMIN_TOKEN='aaaa\nHOST='::1'\n", ".env, line 2 (ADMIN_TOKEN): cannot be read; a quote is not closed"),
    ("PORT=0\nOWN=übel\n".encode("latin-1"), ".env, line 2: cannot be read; save the file as UTF-8"),
    ("ACCESS=allow\n".encode("utf-16"), ".env, line 1: cannot be read; save the file as UTF-8"),
    (b'ADMIN_TOKEN="aaaa" aaaa\n', ".env, line 1 (ADMIN_TOKEN): cannot be read; a quote is not closed, or text stands"),
]


@pytest.mark.parametrize(("text", "says"), UNREADABLE)
def test_a_line_that_cannot_be_read_ends_the_command_and_is_named_without_its_value(
    run: Run, text: bytes, says: str
) -> None:
    Path(".env").write_bytes(text)
    code, said, error = run("access")
    assert (code, said) == (1, "")
    assert error.startswith(f"botservice: {says}")
    assert len(error.splitlines()) == 1
    assert "allow" not in error
    assert "aaaa" not in error


@pytest.mark.parametrize(
    "command",
    [
        "serve",
        "worker",
        "chat",
        "migrate",
        "contexts",
        "export 1",
        "forget 1",
        "backup b",
        "compact",
        "doctor",
        "turns",
    ],
)
def test_no_command_begins_with_settings_that_it_could_not_read(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("HOST", "nowhere.invalid")
    Path(".env").write_text("ACCESS: allow\n")
    code, said, error = run(*command.split())
    assert (code, said) == (1, "")
    assert error == "botservice: .env, line 1 (ACCESS): cannot be read; write NAME=value\n"


def test_a_name_alone_stands_for_the_environment_s_value_and_other_programs_may_write_theirs_in_any_way(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ACCESS", "allow")
    Path(".env").write_text("ACCESS\nlogging.level[0]=a\nspring/x:y=b\n")
    assert run("access") == (0, "access is allow\n", "")


def test_all_lines_that_cannot_be_read_are_named_at_once(run: Run) -> None:
    Path(".env").write_text("ACCESS: allow\nPORT=0\nWHAT IS THIS\nPORT\n")
    error = run("access")[2]
    assert [line.partition(":")[0] for line in error.removeprefix("botservice: ").splitlines()] == [
        ".env, line 1 (ACCESS)",
        ".env, line 3",
        ".env, line 4 (PORT)",
    ]


@pytest.mark.parametrize(
    "text",
    [
        b"ACCESS=allow",
        b"\xef\xbb\xbfACCESS = allow # only friends\r\n",
        b"export ACCESS=allow\n",
        b"export\tACCESS='allow'\n",
        b"'ACCESS'=\"allow\" # friends\n",
        b'# "quoted\n\n   \nSYSTEM_PROMPT="You are\nACCESS: a \\"bot\\"\n"\nACCESS=allow\n',
        b"MY-OWN.key=x\nSYSTEM_PROMPT=it's a \"bot\nPORT=\nACCESS=allow\n",
    ],
)
def test_what_can_be_read_counts_however_it_is_written(run: Run, text: bytes) -> None:
    Path(".env").write_bytes(text)
    assert run("access") == (0, "access is allow\n", "")
