"""Installing the bot: the manifest that creates the app at Slack, the page that sends people there, their return."""

import base64
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final
from urllib.parse import urlencode

from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.oauth.async_callback_options import AsyncCallbackOptions, AsyncFailureArgs, AsyncSuccessArgs
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_bolt.response import BoltResponse
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from botservice.core.errors import BotServiceError
from botservice.storage.database import Storage
from botservice.storage.encryption import Cipher
from transports.common.notice_page import notice_headers, write_notice
from transports.slack.client import SlackClient
from transports.slack.installations import STATE_SECONDS, InstallationStore, StateStore, TokenRotation


@cache
def read_manifest() -> dict[str, Any]:
    """Return the manifest as it lies next to this file."""
    text = files("transports.slack").joinpath("manifest.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def bot_scopes() -> list[str]:
    """Return what the bot must be allowed to do."""
    return list(read_manifest()["oauth_config"]["scopes"]["bot"])


REACTIONS_SCOPE: Final = "reactions:read"
OPTIONAL_SCOPES: Final = frozenset({"canvases:read", "lists:read", REACTIONS_SCOPE})
"""What the bot does without: canvases and lists are named then, and not read; reactions say nothing."""


def bot_events() -> list[str]:
    """Return what the bot must be told of."""
    return list(read_manifest()["settings"]["event_subscriptions"]["bot_events"])


def slash_command() -> str:
    """Return the command, with its slash."""
    return str(read_manifest()["features"]["slash_commands"][0]["command"])


logger = logging.getLogger(__name__)

INSTALL_PATH = "/slack/install"
REDIRECT_PATH = "/slack/oauth_redirect"
_START_AGAIN = ("Start again", INSTALL_PATH)


@dataclass(frozen=True, slots=True)
class OAuthApp:
    """What it takes for other workspaces to install the bot."""

    client_id: str
    client_secret: str
    cipher: Cipher
    public_url: str | None = None


class _InstallationClient(AsyncWebClient):
    """Asks for tokens; the SDK's own way to name the app is one that aiohttp warns of."""

    async def oauth_v2_access(
        self,
        *,
        client_id: str,
        client_secret: str,
        code: str | None = None,
        redirect_uri: str | None = None,
        **more: Any,
    ) -> AsyncSlackResponse:
        credentials = base64.b64encode(f"{client_id}:{client_secret}".encode()).decode()
        said = {"code": code, "redirect_uri": redirect_uri, **more}
        return await self.api_call(
            "oauth.v2.access",
            data={name: each for name, each in said.items() if each is not None},
            headers={"Authorization": f"Basic {credentials}"},
        )


class Installing:
    """Answers the two routes of an installation."""

    def __init__(self, app: OAuthApp, slack: SlackClient) -> None:
        client = _InstallationClient(base_url=slack.base_url, retry_handlers=[])
        rotator = AsyncTokenRotator(client_id=app.client_id, client_secret=app.client_secret, client=client)
        self.store = InstallationStore(slack, app.cipher, TokenRotation(app.cipher, rotator))
        self._states = StateStore()
        redirect = None if app.public_url is None else f"{app.public_url.rstrip('/')}{REDIRECT_PATH}"
        self._flow = AsyncOAuthFlow(
            client=client,
            logger=logging.getLogger("slack_bolt"),
            settings=AsyncOAuthSettings(
                client_id=app.client_id,
                client_secret=app.client_secret,
                scopes=bot_scopes(),
                redirect_uri=redirect,
                install_path=INSTALL_PATH,
                redirect_uri_path=REDIRECT_PATH,
                callback_options=AsyncCallbackOptions(success=_succeed, failure=_fail),
                installation_store=self.store,
                installation_store_bot_only=True,
                state_store=self._states,
                state_expiration_seconds=STATE_SECONDS,
                install_page_rendering_enabled=False,
            ),
        )
        self.routes: Sequence[BaseRoute] = [
            Route(INSTALL_PATH, self._install, methods=["GET"]),
            Route(REDIRECT_PATH, self._return, methods=["GET"]),
        ]

    def open(self, storage: Storage) -> None:
        """Begin to take in installations."""
        self.store.open(storage)
        self._states.open(storage)

    async def _install(self, request: Request) -> Response:
        try:
            return to_starlette_response(await self._flow.handle_installation(to_async_bolt_request(request, b"")))
        except BotServiceError:
            return _later()

    async def _return(self, request: Request) -> Response:
        try:
            return to_starlette_response(await self._flow.handle_callback(to_async_bolt_request(request, b"")))
        except BotServiceError:
            return _later()
        except Exception as error:  # noqa: BLE001 - a border: the address is open to anybody, whatever they put into it
            logger.warning("slack.not_installed", extra={"reason": type(error).__name__})
            return to_starlette_response(_incomplete(400))


def _later() -> Response:
    text = "This is not possible at the moment. Try again in a minute."
    return to_starlette_response(_page(503, "Not now", text, _START_AGAIN))


async def _succeed(args: AsyncSuccessArgs) -> BoltResponse:
    installation = args.installation
    name = installation.team_name or installation.enterprise_name or "the workspace"
    # https://docs.slack.dev/interactivity/deep-linking: the conversation with the app, in any client.
    place = {"app": installation.app_id, "team": installation.team_id}
    address = f"https://slack.com/app_redirect?{urlencode({key: each for key, each in place.items() if each})}"
    way = ("Open it in Slack", address) if installation.app_id else None
    return _page(200, "Installed", f"The bot is installed in {name}. You can write to it in Slack now.", way)


async def _fail(args: AsyncFailureArgs) -> BoltResponse:
    logger.warning("slack.not_installed", extra={"reason": args.reason})
    if args.reason == "access_denied":
        return _page(200, "Not installed", "You cancelled in Slack, so nothing was installed.", _START_AGAIN)
    return _incomplete(args.suggested_status_code)


def _incomplete(status: int) -> BoltResponse:
    text = (
        "The installation was not completed: the way back from Slack was too old, or it was not Slack's. Start again."
    )
    return _page(status, "Not installed", text, _START_AGAIN)


def _page(status: int, title: str, text: str, way: tuple[str, str] | None) -> BoltResponse:
    headers: dict[str, str | Sequence[str]] = {name.lower(): each for name, each in notice_headers().items()}
    return BoltResponse(status=status, headers=headers, body=write_notice(title, text, way=way))
