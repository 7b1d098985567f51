"""What `botservice new --deploy` adds, held against what each platform documents, as far as it goes without them."""

import fnmatch
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

import psutil
import pytest
import yaml

ROOT = Path(__file__).parents[2]
ALL = "docker,heroku,render,fly,railway,kubernetes,systemd"
GOT = ["app.json", "mine.service", "compose.yaml", "fly.toml", "kubernetes.yaml", ".python-version"]
GOT += ["railway.json", "render.yaml"]
TEMPLATES = ["plain", "tools", "database"]


@pytest.fixture
def bot(run, tmp_path):
    """The folder of a new bot with everything for every platform."""
    assert run("new", "My_Bot", "--deploy", ALL)[0] == 0
    return tmp_path / "My_Bot"


def environment(**values):
    kept = {name: value for name, value in os.environ.items() if name not in ("DATABASE_URL", "PYTEST_ADDOPTS")}
    return {
        **kept,
        "PYTHONPATH": str(ROOT),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        **values,
    }


def test_each_place_has_its_files_and_a_bot_that_is_there_gets_them_later(run, tmp_path):
    assert run("new", "mine")[0] == 0
    before = {each.name: each.read_text() for each in (tmp_path / "mine").iterdir()}
    code, said, _ = run("new", "mine", "--deploy", ALL)
    assert (code, said) == (0, f"mine has got: {', '.join(GOT)}\n")
    code, _, said = run("new", "mine", "--deploy", "fly")
    assert code == 1
    assert "fly.toml is there already: nothing was written" in said
    assert before.items() <= {each.name: each.read_text() for each in (tmp_path / "mine").iterdir()}.items()


# The image


def instructions(bot):
    text = (bot / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_image_is_small_runs_as_nobody_special_and_is_ended_as_it_should_be(run, tmp_path, template):
    assert run("new", "mine", "--template", template)[0] == 0
    lines = instructions(tmp_path / "mine")
    names = [name for name, _ in lines]
    assert set(names) <= {"FROM", "RUN", "COPY", "WORKDIR", "USER", "ENV", "VOLUME", "EXPOSE", "HEALTHCHECK", "CMD"}
    images = [rest.split()[0] for name, rest in lines if name == "FROM"]
    assert all(re.fullmatch(r"python:3\.\d+(-slim)?", image) for image in images), "a version is named"
    assert images[-1].endswith("-slim")
    for name, rest in lines:
        if name == "WORKDIR":
            assert rest.startswith("/")
        if name in ("CMD", "ENTRYPOINT"):
            assert json.loads(rest)[:3] == ["python", "-m", "botservice"], "no shell stands before it"
        if name == "HEALTHCHECK":
            assert json.loads(rest[rest.index("[") :])[0] == "python", "an image this small has no curl"
        if name == "RUN" and "pip install" in rest:
            assert "--no-cache-dir" in rest
        assert "sudo" not in rest
        assert name != "COPY" or ".env" not in rest
    last = len(names) - 1 - names[::-1].index("FROM")
    assert names.index("USER") > last
    assert dict(lines[last:])["USER"].isdecimal(), "a cluster sees by its number that it is not root"
    assert names.index("CMD") > names.index("USER")


def test_what_requirements_name_by_a_path_is_copied_before_it_is_installed(bot):
    lines = instructions(bot)
    before = [rest.split() for name, rest in lines[: [n for n, _ in lines].index("USER")] if name == "COPY"]
    patterns = [each for rest in before if not rest[0].startswith("--") for each in rest[:-1]]
    ignored = (bot / ".dockerignore").read_text().splitlines()
    for path in ("requirements.txt", "botservice-1.4.0-py3-none-any.whl"):
        assert any(fnmatch.fnmatch(path, each) for each in patterns), f"{path} is not there when pip runs"
        assert not any(fnmatch.fnmatch(path, each) for each in ignored)
    installs = next(place for place, (name, rest) in enumerate(lines) if name == "RUN" and "pip install" in rest)
    assert installs > next(place for place, (name, rest) in enumerate(lines) if rest.startswith("requirements.txt"))


def test_no_secret_and_no_database_gets_into_the_image(bot):
    ignored = (bot / ".dockerignore").read_text().splitlines()
    assert {".env", ".git", "*.db", "*.db-wal"} <= set(ignored)
    kept_out = (bot / ".gitignore").read_text().splitlines()
    assert {".env", "*.db"} <= set(kept_out)


def test_the_health_check_says_whether_the_process_lives(bot, tmp_path):
    command = dict(instructions(bot))["HEALTHCHECK"]
    command = json.loads(command[command.index("[") :])
    asked = subprocess.run([sys.executable, *command[1:]], env=environment(PORT="1"), capture_output=True, check=False)
    assert asked.returncode != 0, "nobody listens there"


# Files of platforms


def test_compose_starts_the_database_then_migrates_and_then_serves(bot):
    found = yaml.safe_load((bot / "compose.yaml").read_text())
    services = found["services"]
    assert set(found) == {"x-bot", "services", "volumes"}
    assert services["migrate"]["depends_on"] == {"db": {"condition": "service_healthy"}}
    assert services["bot"]["depends_on"] == {"migrate": {"condition": "service_completed_successfully"}}
    assert "pg_isready" in services["db"]["healthcheck"]["test"]
    assert services["db"]["volumes"] == ["db:/var/lib/postgresql/data"]
    assert "db" in found["volumes"]
    assert services["migrate"]["command"] == ["python", "-m", "botservice", "migrate"]
    assert services["bot"]["environment"]["DATABASE_URL"].startswith("postgresql://bot:${POSTGRES_PASSWORD:?")
    assert int(services["bot"]["stop_grace_period"].removesuffix("s")) > 10
    assert all(each.startswith("127.0.0.1:") for each in services["bot"]["ports"]), "the machine alone reaches it"
    known = {"build", "image", "env_file", "environment", "init", "cap_drop", "security_opt", "volumes", "healthcheck"}
    known |= {"restart", "command", "depends_on", "ports", "stop_grace_period"}
    assert all(set(service) <= known for service in services.values())


def test_app_json_says_what_heroku_asks_for(bot):
    found = json.loads((bot / "app.json").read_text())
    assert set(found) <= {"name", "description", "buildpacks", "addons", "formation", "env", "keywords", "stack"}
    assert re.fullmatch(r"[a-z][a-z0-9-]{1,28}[a-z0-9]", found["name"])
    assert found["env"]["ADMIN_TOKEN"]["generator"] == "secret"
    assert found["formation"]["web"]["quantity"] == 1
    assert any(each["plan"].startswith("heroku-postgresql:") for each in found["addons"])
    assert (bot / ".python-version").read_text() == f"{sys.version_info.major}.{sys.version_info.minor}\n"


def test_render_yaml_is_a_blueprint(bot):
    found = yaml.safe_load((bot / "render.yaml").read_text())
    [service], [database] = found["services"], found["databases"]
    known = {"type", "name", "runtime", "plan", "buildCommand", "preDeployCommand", "startCommand", "healthCheckPath"}
    assert set(service) <= known | {"maxShutdownDelaySeconds", "envVars", "region", "autoDeployTrigger"}
    assert service["preDeployCommand"] == "python -m botservice migrate"
    assert service["startCommand"] == "python -m botservice serve --app bot:service"
    assert 10 < service["maxShutdownDelaySeconds"] <= 300
    values = {each["key"]: each for each in service["envVars"]}
    assert values["HOST"]["value"] == "0.0.0.0"
    assert values["DATABASE_URL"]["fromDatabase"] == {"name": database["name"], "property": "connectionString"}
    assert all(values[name] == {"key": name, "sync": False} for name in ("OPENAI_API_KEY", "TELEGRAM_BOT_TOKEN"))


def test_fly_toml_keeps_one_machine_awake_and_migrates_first(bot):
    found = tomllib.loads((bot / "fly.toml").read_text())
    assert set(found) <= {
        "app",
        "primary_region",
        "kill_signal",
        "kill_timeout",
        "build",
        "deploy",
        "env",
        "http_service",
        "vm",
    }
    assert re.fullmatch(r"[a-z0-9-]+", found["app"])
    assert (found["kill_signal"], found["kill_timeout"] > 10) == ("SIGTERM", True)
    assert found["deploy"]["release_command"] == "python -m botservice migrate"
    web = found["http_service"]
    assert str(web["internal_port"]) == found["env"]["PORT"]
    assert (web["auto_stop_machines"], web["min_machines_running"]) == ("off", 1)
    assert web["checks"][0]["path"] == "/readyz"


def test_kubernetes_gets_probes_two_replicas_and_a_job_that_migrates(bot):
    documents = {each["kind"]: each for each in yaml.safe_load_all((bot / "kubernetes.yaml").read_text())}
    assert set(documents) == {"Job", "Deployment", "Service", "PodDisruptionBudget"}
    pods = {kind: documents[kind]["spec"]["template"]["spec"] for kind in ("Job", "Deployment")}
    for pod in pods.values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert isinstance(pod["securityContext"]["runAsUser"], int)
        (container,) = pod["containers"]
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
        assert "DATABASE_URL" not in str(container), "it comes from the secret"
    assert pods["Job"]["containers"][0]["command"] == ["python", "-m", "botservice", "migrate"]
    deployment, (container,) = documents["Deployment"]["spec"], pods["Deployment"]["containers"]
    assert deployment["replicas"] > documents["PodDisruptionBudget"]["spec"]["minAvailable"]
    assert deployment["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert pods["Deployment"]["terminationGracePeriodSeconds"] > 10
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz", "a database that is away restarts nobody"
    assert container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    labels = deployment["template"]["metadata"]["labels"]
    assert labels == deployment["selector"]["matchLabels"] == documents["Service"]["spec"]["selector"]
    assert documents["Service"]["spec"]["ports"][0]["targetPort"] == container["ports"][0]["name"]
    assert dict(each.values() for each in container["env"])["HOST"] == "0.0.0.0"


def test_railway_builds_the_image_and_migrates_first(bot):
    found = json.loads((bot / "railway.json").read_text())
    assert found["build"]["builder"] == "DOCKERFILE"
    assert (bot / found["build"]["dockerfilePath"]).is_file()
    assert found["deploy"]["preDeployCommand"] == ["python -m botservice migrate"]
    assert found["deploy"]["healthcheckPath"] == "/readyz"
    assert found["deploy"]["drainingSeconds"] > 10


def test_the_unit_is_one_that_systemd_takes(bot, tmp_path):
    [unit] = bot.glob("*.service")
    assert unit.name == "my-bot.service"
    text = unit.read_text()
    assert "DynamicUser=yes" in text
    assert "ProtectSystem=strict" in text
    assert int(re.search(r"TimeoutStopSec=(\d+)", text)[1]) > 10
    analyze = shutil.which("systemd-analyze", path=os.defpath)  # it is the system's, whatever else is to be seen
    if analyze is None:
        pytest.skip("there is no systemd-analyze here")
    here = tmp_path / "units" / unit.name
    here.parent.mkdir()
    here.write_text(text.replace("/srv/my-bot/.venv/bin/python", sys.executable))
    checked = subprocess.run([analyze, "verify", str(here)], capture_output=True, text=True, check=False)
    about_it = [line for line in checked.stderr.splitlines() if "my-bot" in line]
    assert (checked.returncode, about_it) == (0, []), checked.stderr


# The Procfile, from a clean checkout


def checkout(bot, folder):
    """Commit a bot as a person does who deploys it, and clone it."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "A bot"]):
        subprocess.run([*git, *command], cwd=bot, check=True)
    subprocess.run([*git, "clone", "-q", str(bot), str(folder)], check=True)
    return folder


def read_until(stream, pattern):
    said = ""
    for line in stream:
        said += line
        if found := re.search(pattern, line):
            return found, said
    raise AssertionError(f"ended before {pattern!r}: {said}")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("template", "kind"), [("plain", "sqlite"), ("tools", "postgres"), ("database", "sqlite"), ("database", "postgres")]
)
def test_a_process_manager_runs_what_the_procfile_says_and_ends_it(run, tmp_path, template, kind, request):
    assert run("new", "mine", "--template", template)[0] == 0
    folder = checkout(tmp_path / "mine", tmp_path / "cloned")
    url = "sqlite:///bot.db" if kind == "sqlite" else request.getfixturevalue("own_postgres_url")
    values = environment(DATABASE_URL=url, ADMIN_TOKEN="0123456789abcdef")
    manager = [sys.executable, "-m", "honcho", "start"]
    released = subprocess.run(
        [*manager, "release"], cwd=folder, env=values, capture_output=True, text=True, check=False
    )
    assert "has version" in released.stdout, released.stdout + released.stderr
    with subprocess.Popen(
        [*manager, "--port", "0", "web"], cwd=folder, env=values, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            found, _ = read_until(running.stdout, r"listening +0\.0\.0\.0:(\d+)")
            address = f"http://127.0.0.1:{found[1]}"
            assert urllib.request.urlopen(f"{address}/healthz").read() == b"ok\n"
            served = [
                each for each in psutil.Process(running.pid).children(recursive=True) if "serve" in each.cmdline()
            ]
            assert served
        finally:
            running.send_signal(signal.SIGTERM)
        said = running.stdout.read()
        assert running.wait(60) in (0, 143)
    assert "stopping: answers that are being made" in said
    assert not [each for each in served if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.slow
def test_the_image_s_steps_lead_to_a_bot_that_is_healthy_and_ends_at_sigterm(bot, tmp_path):
    """The steps of the Dockerfile in a folder of their own, as far as they can be done without a container."""
    lines = instructions(bot)
    values = dict(pair.split("=", 1) for name, rest in lines if name == "ENV" for pair in shlex.split(rest))
    data, image = tmp_path / "data", tmp_path / "image"
    data.mkdir()
    ignored = [line.removeprefix("**/") for line in (bot / ".dockerignore").read_text().splitlines()]
    (bot / ".env").write_text("PORT=1\n")
    shutil.copytree(bot, image, ignore=shutil.ignore_patterns(*ignored))
    assert not (image / ".env").exists()
    database = values["DATABASE_URL"].replace("/data/", f"{data}/")
    chosen = environment(DATABASE_URL=database, HOST=values["HOST"], PORT="0", PYTHONUNBUFFERED="1")
    command = json.loads(dict(lines)["CMD"])
    check = dict(lines)["HEALTHCHECK"]
    with subprocess.Popen(
        [sys.executable, *command[1:]], cwd=image, env=chosen, stdout=subprocess.PIPE, text=True
    ) as running:
        try:
            found, _ = read_until(running.stdout, r"listening +0\.0\.0\.0:(\d+)")
            health = [sys.executable, *json.loads(check[check.index("[") :])[1:]]
            assert subprocess.run(health, env={**chosen, "PORT": found[1]}, check=False).returncode == 0
        finally:
            running.send_signal(signal.SIGTERM)
        assert running.wait(60) == 0
    assert [each.name for each in data.glob("*.db")] == ["botservice.db"]
    assert not [*image.glob("*.db")], "nothing is written but to the volume"
