"""hooks.json: what is wrong in it is named, with what to do."""

import json

import pytest
from standins.tools import add

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM
from botservice.config.settings import Settings
from botservice.core.errors import SettingsError
from botservice.transport_plugins import TransportSetup
from tests.transports.api.signing import KEY, SECRET
from transports.api.hooks_file import read_hooks
from transports.api.plugin import PLUGIN

RIGHT = {"from": "github", "secret": "${CI_SECRET}", "to": "telegram:-100", "do": "say", "template": "{{ payload }}"}
KNOWN = {"CI_SECRET": SECRET, "SHORT": "short", "EMPTY": ""}


def without(*names, **others):
    return {name: value for name, value in RIGHT.items() if name not in names} | others


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ([], "it must be an object"),
        (without(extra=1), "there is no key 'extra'; there are: from, secret"),
        (without("from"), "from must be a text, and is missing"),
        (
            without(**{"from": "gitlab"}),
            "from must be one of github, standard-webhooks, stripe, slack-compatible, bearer",
        ),
        (without(secret="${NOT_SET}"), "secret: the environment has no NOT_SET: set it, here or in .env"),
        (without(secret="${EMPTY}"), "secret: the environment has no EMPTY: set it, here or in .env"),
        (without(secret="${CI SECRET}"), "secret: a variable is written ${NAME}, with letters, digits and _"),
        (without(secret="${SHORT}"), "secret: it must have 16 characters or more"),
        (without(secret=5), "secret must be a text, and is none"),
        (without(**{"from": "standard-webhooks"}), "secret: it must be whsec_ and base64"),
        (without(secret="a secret with blanks!", **{"from": "slack-compatible"}), "secret: it must be letters, digits"),
        (without(to="somewhere"), "to: no chat is named so: write telegram:CHAT_ID"),
        (without(do="shout"), "do must be one of say, ask"),
        (without("template"), "template must be a text, and is missing"),
        (without(template="{% if %}"), "template, line 1: "),
        (without(task="x"), "task goes with ask; leave it out"),
        (without(do="ask", task="x"), "template goes with say; leave it out"),
        (without("template", do="ask"), "task must be a text, and is missing"),
        (without("template", do="ask", task="x", tools="add"), "tools must be a list of names"),
        (without(per_minute=0), "per_minute must be a whole number, 1 or more"),
        (without(per_minute=True), "per_minute must be a whole number, 1 or more"),
    ],
)
def test_a_wrong_hook_is_named_with_what_is_wrong(tmp_path, entry, says):
    path = tmp_path / "hooks.json"
    path.write_text(json.dumps({"hooks": {"ci": entry}}))
    with pytest.raises(SettingsError) as raised:
        read_hooks(path, KNOWN)
    assert str(raised.value).startswith(f"{path}: hook 'ci': {says}")
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "is no JSON: see line 1, column 2"),
        ("[" * 100_000, "is no JSON"),
        ("[]", "has no hooks: it must be"),
        ('{"hooks": []}', "has no hooks: it must be"),
        ('{"hooks": {"a b": {}}}', "hook 'a b': its name must be 1 to 64 letters"),
    ],
)
def test_a_wrong_file_is_named(tmp_path, text, says):
    path = tmp_path / "hooks.json"
    path.write_text(text)
    with pytest.raises(SettingsError, match=says):
        read_hooks(path, KNOWN)
    with pytest.raises(SettingsError, match="cannot be read: it is not there; HOOKS_CONFIG names the file"):
        read_hooks(tmp_path / "others.json", KNOWN)


def test_a_file_in_the_current_folder_is_found_and_can_be_turned_off(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Settings(_env_file=None).hooks_file is None
    (tmp_path / "hooks.json").write_text("{}")
    assert str(Settings(_env_file=None).hooks_file) == "hooks.json"
    assert Settings(_env_file=None, hooks_config="none").hooks_file is None


def test_a_secret_may_stand_in_the_env_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".env").write_text(f"CI_SECRET={SECRET}\n")
    (tmp_path / "hooks.json").write_text(json.dumps({"hooks": {"ci": RIGHT}}))
    assert read_hooks(Settings().hooks_file)["ci"].sender.key == SECRET.encode()


def setup(path, *tools):
    service = AgentService(FunctionsBasedAgent(tools=tools, llm=ScriptedChatLLM([])))
    return TransportSetup(Settings(_env_file=None, hooks_config=str(path)), service)


def test_a_tool_that_is_not_there_is_named_at_the_start(tmp_path, monkeypatch):
    monkeypatch.setenv("CI_SECRET", SECRET)
    path = tmp_path / "hooks.json"
    path.write_text(
        json.dumps({"hooks": {"ci": without("template", do="ask", task="Look", tools=["add", "subtract"])}})
    )
    with pytest.raises(SettingsError, match="hook 'ci': there is no tool 'subtract'; there are: add"):
        list(PLUGIN.build(setup(path, add)))


async def test_the_doctor_tells_of_hooks_and_of_no_secret(tmp_path, monkeypatch):
    monkeypatch.setenv("CI_SECRET", SECRET)
    path = tmp_path / "hooks.json"
    pay = {"from": "standard-webhooks", "secret": f"whsec_{KEY}", "to": "5", "do": "ask", "task": "Look"}
    path.write_text(json.dumps({"hooks": {"ci": RIGHT, "pay": pay}}))
    found = await PLUGIN.check(Settings(_env_file=None, hooks_config=str(path), public_url="https://bot.example.org"))
    assert found.text == (
        "ci (github → telegram:-100, say), pay (standard-webhooks → 5, ask); at https://bot.example.org/hooks/NAME"
    )
    assert await PLUGIN.check(Settings(_env_file=None, hooks_config="none")) is None
