"""Trying the settings against the real Slack, and saying what to do and which line of the manifest it is about."""

from collections.abc import Set as AbstractSet

import aiohttp

from botservice.core.errors import BotServiceError
from transports.slack.bolt import PATH
from transports.slack.client import SlackClient, SlackFailure
from transports.slack.installing import OPTIONAL_SCOPES, REACTIONS_SCOPE, bot_scopes
from transports.slack.workspaces import ROTATION_ADVICE, is_rotating

_MANIFEST = "transports/slack/manifest.json"


async def check_slack(
    *,
    api_url: str,
    token: str | None,
    signing_secret: str | None,
    app_token: str | None,
    public_url: str | None,
    is_installable: bool,
) -> str:
    """Return who the bot is and how it is reached. Nothing is changed at Slack.

    Raises:
        BotServiceError: something is wrong; the message says what to do.
    """
    client = SlackClient(api_url)
    try:
        said = [await _check_token(client, token)] if token is not None else []
        if app_token is not None:
            said.append(await _check_socket(client, app_token))
    finally:
        await client.close()
    if is_installable:
        said.append("workspaces install it at /slack/install")
    if signing_secret is not None:
        where = f"{public_url}{PATH}" if public_url is not None else f"the public address of {PATH}"
        said.append(f"events come by HTTP: settings.event_subscriptions.request_url is {where}")
    if signing_secret is None and app_token is None:
        raise BotServiceError(
            "nothing reaches the bot: set SLACK_APP_TOKEN (Basic Information, App-Level Tokens, connections:write) for "
            "Socket Mode, or SLACK_SIGNING_SECRET (Basic Information, App Credentials) for events by HTTP"
        )
    return "; ".join(said)


async def _check_token(client: SlackClient, token: str) -> str:
    if not token.startswith("xoxb-") and not is_rotating(token, {}):
        raise BotServiceError("SLACK_BOT_TOKEN must begin with xoxb-: OAuth & Permissions, Bot User OAuth Token")
    try:
        answer, headers = await client.call_with_headers(token, "auth.test")
    except SlackFailure as failure:
        raise _explain(client, failure, "SLACK_BOT_TOKEN", "OAuth & Permissions, Bot User OAuth Token") from failure
    if is_rotating(token, answer):
        raise BotServiceError(ROTATION_ADVICE)
    given = headers.get("x-oauth-scopes")
    lacking = set() if given is None else set(bot_scopes()) - {each.strip() for each in given.split(",")}
    lines = ", ".join(f'"{each}"' for each in sorted(lacking - OPTIONAL_SCOPES))
    if lines:
        raise BotServiceError(
            f"the app lacks {lines}: add it at oauth_config.scopes.bot of the app's manifest ({_MANIFEST} has "
            "every line), and install the app into the workspace again"
        )
    return f"{answer.get('user')} answers in {answer.get('team')}{_without(lacking)}"


def _without(lacking: AbstractSet[str]) -> str:
    """Return what the bot does not do for want of scopes that it does without."""
    papers = ", ".join(f'"{each}"' for each in sorted(lacking - {REACTIONS_SCOPE}))
    said = f"; canvases and lists are named and not read, without {papers}" if papers else ""
    return said + (
        f'; reactions to answers are not received, without "{REACTIONS_SCOPE}"' if REACTIONS_SCOPE in lacking else ""
    )


async def _check_socket(client: SlackClient, app_token: str) -> str:
    if not app_token.startswith("xapp-"):
        raise BotServiceError("SLACK_APP_TOKEN must begin with xapp-: Basic Information, App-Level Tokens")
    try:
        answer = await client.call(app_token, "apps.connections.open")
    except SlackFailure as failure:
        if failure.code in ("not_allowed_token_type", "missing_scope"):
            raise BotServiceError(
                "SLACK_APP_TOKEN needs the scope connections:write: Basic Information, App-Level Tokens"
            ) from failure
        if "socket" in failure.code:
            raise BotServiceError(
                'Socket Mode is off: set "socket_mode_enabled": true at settings of the app\'s manifest'
            ) from failure
        raise _explain(client, failure, "SLACK_APP_TOKEN", "Basic Information, App-Level Tokens") from failure
    await _greet(str(answer.get("url")))
    return "Socket Mode works"


async def _greet(url: str) -> None:
    """Open a connection once, as the service does."""
    try:
        async with aiohttp.ClientSession() as session, session.ws_connect(url) as socket:
            await socket.receive(timeout=10.0)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise BotServiceError(
            f"Slack allows Socket Mode, but its socket cannot be reached from here ({type(error).__name__}): "
            "does a proxy or a firewall stop WebSockets?"
        ) from error


def _explain(client: SlackClient, failure: SlackFailure, name: str, where: str) -> BotServiceError:
    if failure.is_token_gone:
        return BotServiceError(f"{name} is refused ({failure.code}): copy it again from api.slack.com/apps ({where})")
    return BotServiceError(
        f"{client.base_url} does not answer as Slack does ({failure.reason}): is there a way to it from here, and is "
        "SLACK_API_URL right?"
    )
