"""A release is made by one command, and what builds it names what is there."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def git(folder, *arguments):
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture
def checkout(tmp_path):
    """A small repository with what the command changes."""
    (tmp_path / "scripts").mkdir()
    (tmp_path / "botservice").mkdir()
    for name in ("release", "release.py"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts" / name)
    (tmp_path / "botservice" / "__init__.py").write_text('__version__ = "0.1.0"\n')
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## Unreleased\n\n- New.\n\n## 0.1.0 - 2026-01-01\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "config", "user.name", "a")
    git(tmp_path, "config", "user.email", "a@example.com")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    return tmp_path


def release(folder, *arguments):
    return subprocess.run(["scripts/release", *arguments], cwd=folder, capture_output=True, text=True, check=False)


def test_a_release_sets_the_version_dates_the_changelog_and_tags(checkout):
    done = release(checkout, "0.2.0")
    assert done.returncode == 0, done.stderr
    assert '__version__ = "0.2.0"' in (checkout / "botservice" / "__init__.py").read_text()
    assert re.search(r"## 0\.2\.0 - \d{4}-\d\d-\d\d\n\n- New\.", (checkout / "CHANGELOG.md").read_text())
    assert git(checkout, "tag", "--points-at", "HEAD").strip() == "v0.2.0"
    assert git(checkout, "status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("arguments", "spoil", "told"),
    [
        ([], None, "usage: scripts/release"),
        (["v0.2"], None, "usage: scripts/release"),
        (["0.2.0"], ("CHANGELOG.md", "# Changelog\n"), "commit or stash"),
        (["0.2.0"], ("new.txt", "x"), "commit or stash"),
    ],
)
def test_what_cannot_be_released_is_refused_and_nothing_changes(checkout, arguments, spoil, told):
    if spoil:
        (checkout / spoil[0]).write_text(spoil[1])
    done = release(checkout, *arguments)
    assert done.returncode != 0
    assert told in done.stderr
    assert git(checkout, "tag") == ""
    assert '"0.1.0"' in (checkout / "botservice" / "__init__.py").read_text()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_may_no_more_than_it_needs_and_runs_what_is_there(path):
    workflow = yaml.safe_load(path.read_text())
    assert workflow["permissions"] == {"contents": "read"}
    for job in workflow["jobs"].values():
        for step in job["steps"]:
            if step.get("uses", "").startswith("actions/checkout@"):
                assert step["with"]["persist-credentials"] is False or "docker" in str(job)
            for script in re.findall(r"(?:scripts|\.ci)/\w+", step.get("run", "")):
                assert (ROOT / script).is_file()
    assert {path.name for path in WORKFLOWS} == {"test.yml", "release.yml"}


def test_the_image_of_the_service_copies_what_is_there_and_nothing_else():
    lines = [line.split() for line in (ROOT / "Dockerfile").read_text().splitlines() if line.startswith("COPY")]
    sources = [each for line in lines if not line[1].startswith("--") for each in line[1:-1]]
    assert sources == ["requirements.txt", "botservice", "transports"]
    assert all((ROOT / each).exists() for each in sources)
    allowed = (ROOT / ".dockerignore").read_text().splitlines()
    assert allowed[0] == "*"
    assert {f"!{each}" for each in sources} <= set(allowed)
    assert "USER 1000" in (ROOT / "Dockerfile").read_text()
