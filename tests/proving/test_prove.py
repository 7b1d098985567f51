"""`botservice prove` as people run it: real processes, real kills, and nothing left of it.

On SQLite, a wheel proves it (`tests/test_wheel.py`).
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from model.conformance import check_record, read_lines
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

pytestmark = pytest.mark.timeout(300)

SHORT = ("--seconds", "4", "--kills", "2", "--seed", "7")


def run(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    with started(folder, *arguments, **environment) as process:
        out, err = process.communicate(timeout=240)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def started(folder: Path, *arguments: str, **environment: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "botservice", "prove", *arguments],
        cwd=folder,
        env={**os.environ, "TMPDIR": str(folder), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def value_of(table: str, name: str) -> str:
    [line] = [line for line in table.splitlines() if line.strip().startswith(f"{name}  ")]
    return line.removeprefix(f"  {name}").split()[0]


KEPT = (
    "SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace "
    "UNION ALL SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace"
)


def execute(url: str, *statements: str) -> list[Any]:
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.begin() as connection:
        last = [connection.execute(text(each)) for each in statements][-1]
        return list(last.scalars()) if last.returns_rows else []


def check_table(done: "subprocess.CompletedProcess[str]") -> None:
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert int(value_of(done.stdout, "messages said")) > 10
    assert value_of(done.stdout, "processes killed") == "2"
    assert {value_of(done.stdout, name) for name in ("lost", "paid twice", "out of order")} == {"0"}
    assert "--seed 7" in done.stdout
    assert "Traceback" not in done.stderr


def test_a_record_that_cannot_be_written_is_refused_before_anybody_writes(tmp_path):
    done = run(tmp_path, *SHORT, "--record", str(tmp_path / "missing" / "record"))
    assert done.returncode != 0
    assert "record cannot be written: No such file or directory" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_what_is_recorded_on_sqlite_is_what_the_model_of_the_protocol_allows(tmp_path):
    record = tmp_path / "record"
    check_table(run(tmp_path, *SHORT, "--record", str(record)))
    check_record(read_lines(record))


@pytest.mark.slow
def test_two_processes_prove_it_on_postgres_and_leave_it_as_empty_as_it_was(tmp_path, own_postgres_url):
    execute(own_postgres_url, "CREATE FUNCTION theirs() RETURNS int LANGUAGE sql AS 'SELECT 1'")
    record = tmp_path / "record"
    check_table(run(tmp_path, *SHORT, "--database", own_postgres_url, "--record", str(record)))
    check_record(read_lines(record))
    assert execute(own_postgres_url, KEPT) == ["theirs"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_whoever_stops_a_proof_finds_no_process_and_no_file_of_it(tmp_path, number):
    with started(tmp_path, "--seconds", "60", "--seed", "7") as process:
        wait_for_child(process)
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == "botservice: stopped. No process and no file of the proof is left."
    assert list(tmp_path.iterdir()) == []
    assert [each for each in children if is_alive(each)] == []


@pytest.mark.slow
def test_no_process_outlives_a_proof_that_was_killed_itself(tmp_path):
    with started(tmp_path, "--seconds", "60", "--seed", "7") as process:
        wait_for_child(process)
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.communicate()
    _, alive = psutil.wait_procs(children, timeout=60)
    assert alive == []


def wait_for_child(process: "subprocess.Popen[str]") -> None:
    """Wait until people write: from the first line of progress on, the service runs."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("prove: "):
            return


def is_alive(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
