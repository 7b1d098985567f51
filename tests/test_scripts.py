"""A bare machine finds what it needs: pins with hashes, scripts that run, documents that name what is there."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PINNED = ["requirements.txt", "requirements-dev.txt", "requirements-pip.txt"]


def names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=~; ]", each)[0].lower() for each in requirements}


def pins(name: str) -> dict[str, str]:
    """Return each pinned package with the lines that belong to it."""
    blocks = re.split(r"\n(?=\S)", (ROOT / name).read_text())
    return {block.partition("==")[0]: block for block in blocks if "==" in block}


@pytest.mark.parametrize("name", PINNED)
def test_every_package_is_pinned_with_its_hash_and_without_an_address(name: str) -> None:
    text = (ROOT / name).read_text()
    assert all("--hash=sha256:" in block for block in pins(name).values())
    assert not re.search(r"https?:|file:|--(extra-)?index-url|--find-links", text)


def test_what_is_declared_is_pinned() -> None:
    run, dev = names(PROJECT["project"]["dependencies"]), names(PROJECT["dependency-groups"]["dev"])
    assert run <= pins("requirements.txt").keys()
    assert run | dev <= pins("requirements-dev.txt").keys()
    shared = pins("requirements.txt").keys() & pins("requirements-dev.txt").keys()
    assert shared == pins("requirements.txt").keys()


def test_both_files_pin_the_same_versions() -> None:
    def versions(name: str) -> dict[str, str]:
        return {package: block.split()[0] for package, block in pins(name).items()}

    assert versions("requirements.txt").items() <= versions("requirements-dev.txt").items()


def test_every_dependency_has_its_reason() -> None:
    text = (ROOT / "docs" / "dependencies.md").read_text()
    declared = names(PROJECT["project"]["dependencies"]) | names(PROJECT["dependency-groups"]["dev"])
    assert {name for name in declared if name not in text} == set()


@pytest.mark.parametrize("script", ["audit", "botservice", "check", "serve", "setup", "test", "../.ci/run"])
def test_scripts_can_be_run_by_any_shell_and_stop_at_the_first_error(script: str) -> None:
    path = ROOT / "scripts" / script
    assert os.access(path, os.X_OK)
    assert path.read_text().startswith("#!/bin/sh\n")
    assert "set -eu\n" in path.read_text()
    subprocess.run(["sh", "-n", str(path)], check=True)


@pytest.mark.parametrize(
    ("given", "passed_on"),
    [
        ((), ("-m", "not slow and not browser")),
        (("-n", "0", "-k", "tests/turns"), ("-m", "not slow and not browser", "-n", "0", "-k", "tests/turns")),
        (("tests/turns",), ("--db", "sqlite", "-m", "not slow and not browser", "tests/turns")),
        (
            ("-x", "./tests/test_app.py::test_one"),
            ("--db", "sqlite", "-m", "not slow and not browser", "-x", "./tests/test_app.py::test_one"),
        ),
        (("tests/turns", "--db", "both"), ("-m", "not slow and not browser", "tests/turns", "--db", "both")),
        (("--db=postgres", "tests/turns"), ("-m", "not slow and not browser", "--db=postgres", "tests/turns")),
        (
            ("tests/transports/web/browser/test_chat.py",),
            ("--db", "sqlite", "-m", "not slow", "tests/transports/web/browser/test_chat.py"),
        ),
        (("tests/crash", "-m", ""), ("--db", "sqlite", "tests/crash", "-m", "")),
        (("-m", "slow or browser"), ("-m", "slow or browser")),
    ],
)
def test_a_path_is_tested_on_sqlite_and_what_is_slow_is_left_out(
    tmp_path: Path, given: tuple[str, ...], passed_on: tuple[str, ...]
) -> None:
    prints = {"scripts/setup": "", ".venv/bin/python": 'printf "%s\\n" "$@"'}
    for name, body in prints.items():
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    shutil.copy(ROOT / "scripts" / "test", tmp_path / "scripts" / "test")
    run = subprocess.run([tmp_path / "scripts" / "test", *given], capture_output=True, text=True, check=True)
    assert run.stdout.splitlines() == ["-m", "pytest", "-n", "2" if given else "4", "--dist", "worksteal", *passed_on]


@pytest.mark.parametrize(
    ("check", "hostile", "first_try", "code", "runs"),
    [(0, 0, 0, 0, 1), (0, 0, 1, 0, 2), (1, 0, 0, 1, 0), (0, 1, 0, 1, 0), (0, 0, 3, 3, 1)],
    ids=[
        *("all passes", "a test passes when it is tried once more", "the code is not in order"),
        *("a test reads the environment", "no test could run"),
    ],
)
def test_a_change_passes_where_all_of_it_does(
    tmp_path: Path, check: int, hostile: int, first_try: int, code: int, runs: int
) -> None:
    stands = {
        "scripts/check": f"exit {check}",
        "scripts/test": f'echo "tested $*"; case $* in *--last-failed*) exit 0 ;; esac; exit {first_try}',
        "scripts/model-servers": "exit 0",
        ".venv/bin/python": f'[ "$TERM$COLUMNS$(umask)" = dumb400077 ] || exit 5; exit {hostile}',
    }
    for name, body in stands.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci" / "run", tmp_path / ".ci" / "run")
    here = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "CHROMIUM": "chromium", "BOTSERVICE_FRESH_COPY": "1"}
    run = subprocess.run([tmp_path / ".ci" / "run"], env=here, capture_output=True, text=True, check=False)
    assert run.returncode == code, run.stderr
    assert run.stdout.count("tested ") == runs


def test_an_old_python_is_refused_in_plain_words(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    for name in ("scripts/setup", "scripts/install.py", "requirements.txt", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    run = subprocess.run(
        ["sh", "scripts/setup"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHON": "false"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 1
    assert "needs Python 3.11 or newer" in run.stderr
    assert not (tmp_path / ".venv").exists()


def test_the_readme_s_commands_are_there() -> None:
    readme = (ROOT / "README.md").read_text()
    assert "scripts/serve" in readme
    assert "scripts/test" in readme
    for link in re.findall(r"\]\(([^)#:]+)\)", readme):
        assert (ROOT / link).exists(), link
