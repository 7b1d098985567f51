"""The package as people install it: from a wheel, a source archive, a folder or a repository, into a bare environment.

The libraries of this environment stand in for a package index, so that nothing is downloaded.
"""

import json
import os
import re
import signal
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).parents[1]


def run(*command, folder=ROOT, **values):
    """Run a command as a person whose environment has nothing of ours."""
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "PYTHONPATH")}
    environment = {**kept, "PIP_DISABLE_PIP_VERSION_CHECK": "1", **values}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel and the source archive of this folder."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", str(folder))
    return folder


@pytest.fixture
def repository(built, tmp_path):
    """A repository with one commit, of what it takes to build: to clone all history takes longer than all else."""
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    folder = tmp_path / archive.name.removesuffix(".tar.gz")
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main")
    for command in (("init", "-q"), ("add", "."), ("commit", "-qm", "All of it")):
        run(*git, *command, folder=folder)
    return folder


@pytest.fixture
def bare(tmp_path):
    """The Python of a new environment, with libraries and without botservice."""
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env"))
    python = tmp_path / "env" / "bin" / "python"
    packages = Path(run(str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    # Files that end in .pth are not read in the folders that such a file names: so ours is not among them.
    libraries = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    (packages / "libraries.pth").write_text("".join(f"{each}\n" for each in libraries))
    return python


def install(python, what):
    where_from = ("--no-deps", "--no-index", "--no-build-isolation", "--no-cache-dir")
    options = ("--quiet", "--no-input", "--no-compile", "--force-reinstall", *where_from)
    run(str(python), "-m", "pip", "install", *options, what)


def ask_in_the_browser(base, text):
    """Return what is answered to a message, as the page sends it and hears of it."""
    with httpx.Client(base_url=base, headers={"Origin": base}, timeout=120) as browser:
        assert "<html" in browser.get("/", headers={"Accept": "text/html"}).text
        assert browser.post("/web/messages", json={"id": "message-1", "text": text}).is_success
        with browser.stream("GET", "/web/events") as events:
            for line in events.iter_lines():
                name, _, value = line.partition(": ")
                if name == "data" and (said := json.loads(value)).get("role") == "assistant":
                    return said["text"]
    raise AssertionError("the stream ended without an answer")


@pytest.mark.slow
def test_what_an_index_shows_has_no_link_that_leads_nowhere(built):
    [wheel] = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        [name] = [each for each in archive.namelist() if each.endswith(".dist-info/METADATA")]
        found = Parser().parsestr(archive.read(name).decode())
        names = archive.namelist()
    assert found["Description-Content-Type"] == "text/markdown"
    text = found.get_payload()
    assert "botservice new my-bot" in text
    assert [link for link in re.findall(r"\]\(([^)]+)\)", text) if not link.startswith("https://")] == []
    assert found["License-Expression"] == "MIT"
    assert found.get_all("License-File") == ["LICENSE"]
    assert found.get_all("Provides-Extra") == ["documents", "local", "meaning", "otel"]
    assert found["Requires-Python"] == ">=3.11"
    assert {"botservice/py.typed", "transports/py.typed"} <= set(names)
    assert any(each.endswith(".dist-info/licenses/LICENSE") for each in names)
    assert any(each.startswith("botservice/cli/template/deploy/") for each in names)


@pytest.mark.slow
def test_the_source_archive_has_what_it_takes_to_build_and_nothing_of_the_tests(built):
    [archive] = built.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        names = {name.partition("/")[2] for name in opened.getnames()}
    assert {"pyproject.toml", "LICENSE", "PACKAGE.md", "botservice/py.typed", "transports/py.typed"} <= names
    assert [name for name in names if name.startswith(("tests/", ".ci/", "benchmarks/"))] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", "archive", "folder", "repository"])
def test_it_is_installed_from_anywhere_and_says_where_it_came_from(kind, built, bare, tmp_path, request):
    repository = request.getfixturevalue("repository") if kind == "repository" else None
    source = {
        "wheel": lambda: str(next(built.glob("*.whl"))),
        "archive": lambda: str(next(built.glob("*.tar.gz"))),
        "folder": lambda: str(ROOT),
        "repository": lambda: f"git+file://{repository}",
    }[kind]()
    install(bare, source)
    command = str(bare.parent / "botservice")
    said = run(command, "--version", folder=tmp_path)
    run(command, "new", "my-bot", folder=tmp_path)
    requirement = (tmp_path / "my-bot" / "requirements.txt").read_text().strip()
    if kind == "repository":
        commit = run("git", "rev-parse", "HEAD", folder=repository).strip()
        assert said.rstrip().endswith(f"(from file://{repository}, commit {commit[:12]})")
        assert requirement == f"git+file://{repository}@{commit}"
    else:
        assert f"(from file://{source})" in said
        assert requirement == f"botservice @ file://{source}"
    if kind in ("repository", "wheel"):  # the two ways in which a bot asks for it
        install(bare, requirement)
        assert run(command, "--version", folder=tmp_path) == said, "what a bot asks for is what there was"


@pytest.mark.slow
def test_a_bot_of_the_installed_package_passes_its_test_and_answers_in_the_browser(built, bare, tmp_path):
    install(bare, str(next(built.glob("*.whl"))))
    run(str(bare.parent / "botservice"), "new", "my-bot", "--template", "tools", folder=tmp_path)
    bot = tmp_path / "my-bot"
    where = run(str(bare), "-c", "import botservice; print(botservice.__file__)", folder=bot)
    assert where.startswith(str(bare.parents[1]))
    assert "3 passed" in run(str(bare), "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=bot)
    command = [str(bare.parent / "botservice"), "serve", "--app", "bot:service", "--port", "0"]
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "PYTHONPATH")}
    with subprocess.Popen(command, cwd=bot, env=kept, stdout=subprocess.PIPE, text=True) as served:
        try:
            address = next(found[1] for line in served.stdout if (found := re.search(r"listening +(\S+)", line)))
            answer = ask_in_the_browser(f"http://{address}", "show_menu")
        finally:
            served.send_signal(signal.SIGTERM)
        assert served.wait(60) == 0
    assert answer.startswith("My tool says: ")
    assert "can order: soup 6 €" in answer
