"""Ctrl+C while a command is still being loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from crash.served import ROOT

pytestmark = pytest.mark.slow  # processes of their own

INTERRUPTS = "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n"


@pytest.mark.parametrize("command", ["serve", "worker"])
@pytest.mark.parametrize("module", ["typer", "uvicorn"])  # what the command line needs, and what the command does
def test_a_service_that_is_interrupted_while_it_is_loaded_ends_without_a_word(
    tmp_path: Path, command: str, module: str
) -> None:
    (tmp_path / f"{module}.py").write_text(INTERRUPTS)
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}", "PORT": "0"}
    done = subprocess.run(
        [sys.executable, "-m", "botservice", command],
        cwd=tmp_path,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
