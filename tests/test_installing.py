"""Making .venv: whole or not at all, once at a time, also after it was cut off. A small project stands in."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 240

pytestmark = pytest.mark.slow

# Builds the small project without anything from elsewhere, says so in a file, and waits while it is told to.
BACKEND = r"""
import pathlib, zipfile

def build_editable(folder, settings=None, metadata=None):
    name, here = "small-1.0-py3-none-any.whl", pathlib.Path.cwd()
    with (here / "built").open("a") as log:
        log.write("built\n")
    if (here / "gate").exists():
        (here / "gate").read_text()
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w") as wheel:
        wheel.writestr("small.pth", str(here))
        info = "small-1.0.dist-info/"
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: small\nVersion: 1.0\n")
        kind = "Wheel-Version: 1.0\nGenerator: small\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        wheel.writestr(info + "WHEEL", kind)
        wheel.writestr(info + "RECORD", "")
    return name
"""
# Found in the place of Python's own: bringing pip along takes most of a set-up's time, so that of this environment
# stands in.
ENSUREPIP = f"""
import pathlib, sysconfig
pip = pathlib.Path(sysconfig.get_path("purelib"), "pip")
pip.symlink_to({str(Path(sysconfig.get_path("purelib")) / "pip")!r})
"""
PROJECT = """
[project]
name = "small"
version = "1.0"
[build-system]
requires = []
build-backend = "backend"
backend-path = ["."]
"""


class Small:
    """A project of the same shape that needs nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "scripts").mkdir()
        for name in ("setup", "install.py"):
            shutil.copy(ROOT / "scripts" / name, folder / "scripts" / name)
        (folder / "backend.py").write_text(BACKEND)
        (folder / "pyproject.toml").write_text(PROJECT)
        for name in ("requirements.txt", "requirements-dev.txt"):
            (folder / name).write_text("")
        self.path = os.environ["PATH"]
        self.settings: dict[str, str] = {}
        self.begun: list[subprocess.Popen[str]] = []

    def begin(self, *arguments: str) -> "subprocess.Popen[str]":
        """Start the set-up, in a group of its own."""
        environment = {"PATH": self.path, "HOME": str(self.folder), "PYTHON": sys.executable, **self.settings}
        command = ["sh", "scripts/setup", *arguments]
        begun = subprocess.Popen(
            command, cwd=self.folder, env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self.begun.append(begun)
        return begun

    def set_up(self, *arguments: str) -> str:
        """Return what a set-up that succeeds says."""
        begun = self.begin(*arguments)
        said = begun.communicate(timeout=PATIENCE_SECONDS)[1]
        assert begun.returncode == 0, said
        return said

    @property
    def times_built(self) -> int:
        """How often the project was installed, or begun to be."""
        built = self.folder / "built"
        return built.read_text().count("built") if built.exists() else 0

    def begin_and_wait_in_the_middle(self) -> "subprocess.Popen[str]":
        """Start a set-up that waits at a gate once it has begun to install the project."""
        os.mkfifo(self.folder / "gate")
        before = self.times_built
        begun = self.begin()
        while self.times_built == before and begun.poll() is None:
            time.sleep(0.01)
        return begun

    def end(self, begun: "subprocess.Popen[str]", number: int) -> str:
        """Return what a set-up has said that a signal ends at the gate, which is gone then."""
        os.killpg(begun.pid, number)
        said = begun.communicate(timeout=PATIENCE_SECONDS)[1]
        (self.folder / "gate").unlink()
        return said

    def open_gate(self) -> None:
        """Let the installation that waits go on; returns only when one waits, or after it."""
        with (self.folder / "gate").open("w"):
            (self.folder / "gate").unlink()


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Small]:
    """A project without an environment."""
    project = Small(tmp_path)
    yield project
    for begun in project.begun:
        if begun.poll() is None:
            os.killpg(begun.pid, signal.SIGKILL)
        begun.communicate(timeout=PATIENCE_SECONDS)


@pytest.fixture
def small(bare: Small) -> Small:
    """A project whose environment is made in a moment: with a uv that can install nothing, and a pip that is here."""
    uv = bare.folder / "bin" / "uv"
    uv.parent.mkdir()
    uv.write_text("#!/bin/sh\nexit 1\n")
    uv.chmod(0o755)
    bare.path = f"{uv.parent}{os.pathsep}{bare.path}"
    (bare.folder / "ensurepip.py").write_text(ENSUREPIP)
    return bare


@pytest.fixture
def brought() -> str:
    """The pins of the very pip that this Python brings."""
    [wheel] = (Path(sysconfig.get_path("stdlib")) / "ensurepip" / "_bundled").glob("pip-*.whl")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"--no-index\n--find-links {wheel.parent}\npip=={wheel.name.split('-')[1]} --hash=sha256:{digest}\n"


def test_what_is_installed_is_not_installed_again_and_what_tests_need_serves_too(bare: Small, brought: str) -> None:
    (bare.folder / "requirements-pip.txt").write_text(brought)
    assert "1 of 3: making .venv" in bare.set_up()
    assert bare.set_up() == ""
    assert bare.times_built == 1
    assert "1 of 3: .venv is there" in bare.set_up("dev"), "what serves is not enough for the tests"
    assert bare.set_up() == ""
    assert bare.times_built == 2


def test_the_pip_that_is_typed_in_the_environment_is_its_own_also_where_uv_installs(small: Small) -> None:
    (small.folder / "ensurepip.py").unlink()
    small.set_up()
    assert (small.folder / ".venv" / "bin" / "pip").is_file()


def test_where_a_start_keeps_no_bytecode_it_is_made_with_the_installation(small: Small) -> None:
    for package in ("botservice", "transports"):
        (small.folder / package).mkdir()
        (small.folder / package / "__init__.py").write_text("")
    small.set_up()
    assert not list(small.folder.glob("*/__pycache__/__init__.*"))
    small.settings["PYTHONDONTWRITEBYTECODE"] = "1"
    (small.folder / "requirements.txt").write_text("# newer\n")
    small.set_up()
    assert len(list(small.folder.glob("*/__pycache__/__init__.*"))) == len(("botservice", "transports"))


def test_other_pins_are_installed_once_also_the_old_ones_again_and_so_is_what_lost_its_python(small: Small) -> None:
    small.set_up()
    (small.folder / "requirements.txt").write_text("# newer\n")
    first = small.begin_and_wait_in_the_middle()
    second = small.begin()
    assert second.stderr is not None
    assert "waiting for it" in second.stderr.readline()
    small.open_gate()
    for each in (first, second):
        said = each.communicate(timeout=PATIENCE_SECONDS)[1]
        assert each.returncode == 0, said
    assert small.times_built == 2
    (small.folder / "requirements.txt").write_text("")
    assert "1 of 3: .venv is there" in small.set_up()
    assert small.times_built == 3
    for python in (small.folder / ".venv" / "bin").glob("python*"):
        python.unlink()
    assert "making .venv" in small.set_up()
    assert small.times_built == 4


def test_an_installation_that_fails_or_is_stopped_or_cut_off_says_so_and_is_begun_anew(small: Small) -> None:
    (small.folder / "requirements.txt").write_text("nosuchpackage==1.0 --hash=sha256:" + "0" * 64 + "\n--no-index\n")
    failed = small.begin()
    said = failed.communicate(timeout=PATIENCE_SECONDS)[1]
    assert failed.returncode == 1
    assert "nosuchpackage" in said
    assert "The installation failed" in said

    (small.folder / "requirements.txt").write_text("")
    stopped = small.begin_and_wait_in_the_middle()
    said = small.end(stopped, signal.SIGINT)
    assert "making .venv" in said, "what had failed was not taken for whole"
    assert "3 of 3" in said
    assert stopped.returncode == 130
    assert said.splitlines()[-1] == "botservice: stopped. The next start begins the installation again."
    assert "Traceback" not in said

    cut_off = small.begin_and_wait_in_the_middle()
    assert "making .venv" in small.end(cut_off, signal.SIGKILL)
    assert "making .venv" in small.set_up()
    assert small.set_up() == ""
