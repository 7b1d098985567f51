"""Transports come by a list of built-in plugins, and by entry points of other packages."""

import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, SettingsError
from botservice.cli.doctor import check_everything
from botservice.config.settings import Settings
from botservice.server.serving import _check
from botservice.transport_plugins import BUILT_IN, GROUP, TransportSetup, build_transports, load_plugin, load_plugins

ROOT: Final = Path(__file__).parents[1]
EXAMPLE: Final = ROOT / "examples" / "discord_transport"
PIGEON: Final = """
from botservice.core.check_result import Finding
from botservice.turns.transport import Transport

class Pigeons(Transport):
    name = "pigeon"
    read = plan = send = print

class Plugin:
    name, label, off = "pigeon", "pigeons", "off: build a loft"
    def build(self, setup):
        return [Pigeons()] if setup.bot_name == "Dove" else []
    async def check(self, settings):
        return Finding("pigeons", "they fly")
"""

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a package that has one entry point, as pip would leave it."""
    known = {*sys.modules}

    def install(value: str, **modules: str) -> None:
        folder = tmp_path / "packages"
        about = folder / "carriers-1.0.dist-info"
        about.mkdir(parents=True)
        (about / "METADATA").write_text("Metadata-Version: 2.1\nName: carriers\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[{GROUP}]\nmine = {value}\n")
        for name, text in modules.items():
            (folder / f"{name}.py").write_text(text)
        monkeypatch.syspath_prepend(str(folder))
        load_plugins.cache_clear()

    yield install
    load_plugins.cache_clear()
    for name in {*sys.modules} - known:
        if name.startswith(("carriers", "plugin", "transport", "answers", "client", "growing", "interactions")):
            sys.modules.pop(name)


def settings(**values: Any) -> Settings:
    return Settings(**{"_env_file": None, "openai_api_key": None, "openai_base_url": None, **values})


def service(**options: Any) -> AgentService:
    return AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM([])), **options)


def test_the_built_in_transports_are_named_by_the_path_of_their_module() -> None:
    plugins = [load_plugin(each) for each in BUILT_IN]
    assert [plugin.name for plugin in plugins] == ["web", "telegram", "slack", "terminal", "api"]
    built = build_transports(settings(telegram_bot_token="1:a", slack_bot_token="xoxb-1", slack_app_token="xapp-1"))
    assert [transport.name for transport in built] == ["web", "telegram", "slack"]


def test_what_one_plugin_makes_of_the_settings_others_get_as_well() -> None:
    def make(_: Settings) -> object:
        return object()

    setup = TransportSetup(settings())
    assert setup.shared(make) is setup.shared(make)
    assert setup.shared(make) is not TransportSetup(settings()).shared(make)


async def test_the_transport_of_another_package_is_built_tried_and_known(install: Install) -> None:
    install("carriers_of_a_test:Plugin", carriers_of_a_test=PIGEON)
    assert [each.name for each in build_transports(settings(), service(name="Dove"))] == ["web", "terminal", "pigeon"]
    assert [each.name for each in build_transports(settings(), service(name="Hawk"))] == ["web", "terminal"]
    found = await check_everything(settings(database_url="sqlite:///none.db", port=0))
    assert ("pigeons", "they fly") in [(each.name, each.text) for each in found]
    _check(settings(owners="pigeon:5"), service(), is_split=False)
    with pytest.raises(SettingsError, match="hawk:5 would be nobody: there are the platforms web, telegram, slack, "):
        _check(settings(owners="hawk:5"), service(), is_split=False)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("carriers_of_a_test:Nothing", "AttributeError"),
        ("carriers_of_another_test:Plugin", "ModuleNotFoundError"),
        ("carriers_of_a_test:__name__", "it is 'carriers_of_a_test': give a TransportPlugin"),
    ],
)
async def test_a_package_whose_transport_cannot_be_loaded_is_named(install: Install, value: str, why: str) -> None:
    install(value, carriers_of_a_test=PIGEON)
    with pytest.raises(SettingsError, match=rf"carriers: its transport {value} cannot be loaded \(.*{why}"):
        build_transports(settings())
    found = {each.name: each for each in await check_everything(settings(database_url="sqlite:///none.db", port=0))}
    assert found["transports"].is_wrong
    assert found["telegram"].is_off


def test_a_plugin_that_fails_ends_the_start_in_a_line(install: Install) -> None:
    install("carriers_of_a_test:Plugin", carriers_of_a_test=PIGEON.replace("[Pigeons()]", "1 / 0"))
    with pytest.raises(SettingsError, match="the transport pigeon cannot be built: ZeroDivisionError"):
        build_transports(settings(), service(name="Dove"))


def test_the_example_of_discord_is_turned_on_by_its_entry_point(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    modules = project["tool"]["setuptools"]["py-modules"]
    assert {path.stem for path in EXAMPLE.glob("*.py")} == {*modules, "bot"}
    install(project["project"]["entry-points"][GROUP]["discord"])
    monkeypatch.syspath_prepend(str(EXAMPLE))
    assert [each.name for each in build_transports(settings())] == ["web"]
    monkeypatch.setenv("DISCORD_BOT_TOKEN", "token")
    with pytest.raises(SettingsError, match="Discord needs DISCORD_APPLICATION_ID, DISCORD_PUBLIC_KEY"):
        build_transports(settings())
    monkeypatch.setenv("DISCORD_APPLICATION_ID", "1")
    monkeypatch.setenv("DISCORD_PUBLIC_KEY", "ab" * 32)
    assert [each.name for each in build_transports(settings())] == ["web", "discord"]
