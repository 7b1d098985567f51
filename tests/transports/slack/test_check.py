"""`doctor` tries Slack's settings and says what to do; the manifest has what the bot uses and nothing else."""

import json
import re
from pathlib import Path

import pytest
from standins.slack_api import Refuse, SlackApi
from standins.slack_api.chat import methods

from botservice.cli.doctor import check_everything
from botservice.config.settings import Settings
from transports.slack.bolt import build_bolt
from transports.slack.installing import bot_events, bot_scopes, read_manifest

PRODUCT = Path(__file__).parents[3] / "transports" / "slack"
HISTORIES = {"channels:history", "groups:history", "im:history", "mpim:history"}


async def finding(**settings: object):
    found = await check_everything(Settings.load(None, **{"port": 0, **settings}))
    return next(each for each in found if each.name == "slack")


def own(api: SlackApi, **more: object) -> dict[str, object]:
    return {"slack_bot_token": api.bot_token, "slack_api_url": api.url, "slack_app_token": api.app_token, **more}


async def test_what_works_is_said(api: SlackApi) -> None:
    api.world.scopes = set(bot_scopes())
    found = await finding(**own(api, slack_signing_secret=api.signing_secret, public_url="https://bot.example.com"))
    assert not found.is_wrong
    assert "botty answers in Team T0001" in found.text
    assert "Socket Mode works" in found.text
    assert "https://bot.example.com/slack/events" in found.text


async def test_a_token_that_ends_is_an_error_with_the_remedy(api: SlackApi) -> None:
    api.world.tokens["xoxe.xoxb-1-own"] = "T0001"
    found = await finding(**own(api) | {"slack_bot_token": "xoxe.xoxb-1-own"})
    assert found.is_wrong
    assert "token_rotation_enabled" in found.text


async def test_a_scope_that_it_does_without_is_named_and_no_error(api: SlackApi) -> None:
    api.world.scopes = set(bot_scopes()) - {"canvases:read"}
    found = await finding(**own(api))
    assert not found.is_wrong
    assert 'not read, without "canvases:read"' in found.text


async def test_without_the_scope_of_reactions_the_rest_works(api: SlackApi) -> None:
    api.world.scopes = set(bot_scopes()) - {"reactions:read"}
    found = await finding(**own(api))
    assert not found.is_wrong
    assert 'not received, without "reactions:read"' in found.text
    assert "canvases" not in found.text


async def test_a_missing_scope_is_named_with_its_line(api: SlackApi) -> None:
    api.world.scopes = set(bot_scopes()) - {"files:read"}
    found = await finding(**own(api))
    assert found.is_wrong
    assert '"files:read"' in found.text
    assert "oauth_config.scopes.bot" in found.text


@pytest.mark.parametrize(
    ("change", "order", "says"),
    [
        ({"slack_bot_token": "xoxb-wrong-token"}, None, "SLACK_BOT_TOKEN is refused"),
        ({"slack_bot_token": "xoxp-a-persons-token"}, None, "must begin with xoxb-"),
        ({"slack_app_token": None}, None, "SLACK_SIGNING_SECRET"),
        ({"slack_app_token": "xoxb-no-app-token"}, None, "must begin with xapp-"),
        ({}, Refuse("missing_scope"), "connections:write"),
        ({}, Refuse("socket_mode_disabled"), "socket_mode_enabled"),
        ({"slack_client_id": "1.2"}, None, "ENCRYPTION_KEY"),
        ({"slack_api_url": "http://127.0.0.1:1/api"}, None, "SLACK_API_URL"),
    ],
)
async def test_what_is_wrong_is_said_with_what_to_do(api: SlackApi, change: dict, order, says: str) -> None:
    api.world.scopes = set(bot_scopes())
    if order is not None:
        api.order(order, "apps.connections.open")
    found = await finding(**{**own(api), **change})
    assert found.is_wrong
    assert says in found.text
    assert not any(str(value) in found.text for value in change.values() if str(value).startswith("xox"))


async def test_settings_that_turn_nothing_on_are_pointed_at() -> None:
    assert (await finding(slack_signing_secret="0" * 32)).is_wrong
    assert (await finding()).is_off


def test_the_manifest_asks_for_what_is_used_and_no_more() -> None:
    source = "\n".join(path.read_text() for path in PRODUCT.rglob("*.py"))
    called = {name for name in methods if f'"{name}"' in source} | {"chat.postMessage"}
    needed = {scope for name, (_, _, scope) in methods.items() if name in called and scope not in ("", "history")}
    # Reading threads and hearing messages takes the histories; mentions, commands and downloads a scope each; to hear
    # who has brought the bot into a channel takes reading of channels.
    others = {"app_mentions:read", "channels:read", "commands", "files:read", "groups:read", "reactions:read"}
    assert set(bot_scopes()) == needed | HISTORIES | others


def test_the_manifest_subscribes_to_what_is_heard_and_no_more() -> None:
    source = (PRODUCT / "intake.py").read_text()
    heard = {name for name in re.findall(r'"([a-z_]+)"', source) if name in {*bot_events(), "message"}}
    assert {event.partition(".")[0] for event in bot_events()} == heard
    assert {event for event in bot_events() if event.startswith("message.")} == {
        f"message.{kind.partition(':')[0]}" for kind in HISTORIES
    }


def test_the_manifest_names_what_the_code_answers_to() -> None:
    from transports.slack.interactions import ASK_ANYTHING, ASK_CALLBACK

    manifest = read_manifest()
    assert json.loads(json.dumps(manifest)) == manifest
    assert [each["callback_id"] for each in manifest["features"]["shortcuts"]] == [ASK_CALLBACK, ASK_ANYTHING]
    assert manifest["features"]["agent_view"]["agent_description"]
    assert manifest["settings"]["interactivity"]["is_enabled"]
    assert "assistant_view" not in manifest["features"]
    assert build_bolt.__doc__
