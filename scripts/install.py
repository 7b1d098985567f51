"""Make .venv with what is pinned: whole or not at all, once at a time. `scripts/setup` calls it with the right Python.

It uses the standard library alone, because nothing else is there yet.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENVIRONMENT = ROOT / ".venv"
PYTHON = ENVIRONMENT / "bin" / "python"
WHOLE = ENVIRONMENT / ".installed"  # says what is installed; written last
BEGUN = ENVIRONMENT / ".installing"  # there while something is installed, and after that was cut off
PINS = {"run": "requirements.txt", "dev": "requirements-dev.txt"}
INSTALLER = "requirements-pip.txt"
IS_COMPILED_NOW = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))  # else by the first start, or by the tests
OPTIONS = {"run": (), "dev": () if IS_COMPILED_NOW else ("--no-compile",)}  # tests import a part of it all
INSTALL = ["install", "--disable-pip-version-check", "--no-input"]
PIP = ["-m", "pip", *INSTALL]
ENSUREPIP = ["-m", "ensurepip", "--default-pip"]  # or `pip` in the environment would be another one's
BROUGHT = sysconfig.get_config_var("WHEEL_PKG_DIR") or f"{sysconfig.get_path('stdlib')}/ensurepip/_bundled"
SECONDS_BETWEEN_LINES = 5.0
LAST_LINES = 30


def main(kind: str) -> None:
    """Install what `run` or `dev` needs, unless it is there."""
    if _is_installed(kind):
        return
    with _alone():
        if _is_installed(kind):  # by the start that was waited for
            return
        started = time.monotonic()
        _make_environment()
        WHOLE.unlink(missing_ok=True)
        BEGUN.touch()
        _install_pins(kind)
        _say("3 of 3: botservice itself")
        _install([*PIP, "--quiet", "--no-deps", "--editable", "."], "the project")
        if IS_COMPILED_NOW:
            subprocess.run([PYTHON, "-m", "compileall", "-qq", "botservice", "transports"], cwd=ROOT, check=False)
        BEGUN.write_text(f"{kind} {_fingerprint(kind)}\n")
        BEGUN.replace(WHOLE)
        _say(f"installed in {time.monotonic() - started:.0f} seconds")


def _is_installed(kind: str) -> bool:
    """Return whether .venv holds what is wanted: what the tests need has everything that the service needs."""
    try:
        held, fingerprint = WHOLE.read_text().split()
    except (OSError, ValueError):
        return False
    is_enough = held == kind or (held == "dev" and kind == "run")
    return is_enough and fingerprint == _fingerprint(held) and os.access(PYTHON, os.X_OK)


def _fingerprint(kind: str) -> str:
    """Return what changes when another installation is needed: pins, the project, the place, the Python."""
    digest = hashlib.sha256(str(ROOT).encode())  # commands in .venv hold its path
    for name in (PINS.get(kind, PINS["dev"]), "pyproject.toml"):
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Wait until no other start installs here, and let none begin. A lock of a process that died is gone with it."""
    folder = os.open(ROOT, os.O_RDONLY)
    try:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("another start is installing; waiting for it")
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _make_environment() -> None:
    if not BEGUN.exists() and _works():
        _say("1 of 3: .venv is there")
        return
    _say(f"1 of 3: making .venv with Python {'.'.join(map(str, sys.version_info[:3]))}")
    command = [sys.executable, "-m", "venv", "--without-pip", "--clear", str(ENVIRONMENT)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        done = _bring_pip()
    if done.returncode != 0:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        sys.exit(
            f"{done.stdout}{done.stderr}\n{sys.executable} cannot make an environment. On Debian and Ubuntu, install "
            "python3-venv; elsewhere, set PYTHON to a complete Python 3.11 or newer."
        )


def _bring_pip() -> "subprocess.CompletedProcess[str]":
    """Install a newer pip by the one that this Python brings, which may take twice as long; else that one."""
    for wheel in () if shutil.which("uv") else Path(BROUGHT).glob("pip-*.whl"):  # it runs out of its wheel
        command = [PYTHON, wheel / "pip", *INSTALL, "--no-compile", "--require-hashes", "-r", INSTALLER]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return done
    return subprocess.run([PYTHON, *ENSUREPIP], capture_output=True, text=True, check=False)


def _works() -> bool:
    """Return whether .venv has a pip that runs: its Python may be gone, or other tools may have made it without."""
    if not os.access(PYTHON, os.X_OK):
        return False
    tries = (["-m", "pip", "--version"], ENSUREPIP)
    return any(subprocess.run([PYTHON, *each], capture_output=True, check=False).returncode == 0 for each in tries)


def _install_pins(kind: str) -> None:
    name = PINS[kind]
    packages = sum("==" in line for line in (ROOT / name).read_text().splitlines())
    uv = shutil.which("uv")
    if uv is not None:
        _say(f"2 of 3: {packages} packages with uv, some seconds")
        compiled = ["--compile-bytecode"] if IS_COMPILED_NOW else []
        command = [uv, "pip", "install", "--quiet", *compiled, "--python", PYTHON, "--require-hashes", "-r", name]
        if subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode == 0:
            return
        _say("uv could not; pip tries")
    _say(f"2 of 3: {packages} packages with pip, a minute or two")
    _install([*PIP, "--progress-bar=off", *OPTIONS[kind], "--require-hashes", "-r", name], f"{packages} packages")


def _install(arguments: list[str], what: str) -> None:
    """Run pip and say how far it is; leave with its last words where it fails."""
    said: list[str] = []
    command = [str(PYTHON), *arguments]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as running:
        _follow(running, said, what)
    if running.returncode != 0:
        sys.exit("".join(said[-LAST_LINES:]) + "\nThe installation failed. The next start begins it again.")


def _follow(running: "subprocess.Popen[str]", said: list[str], what: str) -> None:
    assert running.stdout is not None
    collected, last, are_all_here = 0, time.monotonic(), False
    for line in running.stdout:
        said.append(line)
        collected += line.startswith(("Collecting ", "Requirement already satisfied: "))
        if line.startswith("Installing collected packages"):
            are_all_here = True
            _say("        all are here and are put in place")
        elif not are_all_here and time.monotonic() - last > SECONDS_BETWEEN_LINES:
            last = time.monotonic()
            _say(f"        {collected} of {what} are here")


def _say(text: str) -> None:
    print(f"botservice: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main("dev" if sys.argv[1:2] == ["dev"] else "run")
    except KeyboardInterrupt:
        _say("stopped. The next start begins the installation again.")
        sys.exit(130)
