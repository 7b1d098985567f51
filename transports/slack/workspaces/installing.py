"""Installing the bot into further workspaces: the page that sends people to Slack, and their return."""

import base64
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.oauth.async_callback_options import AsyncCallbackOptions, AsyncFailureArgs, AsyncSuccessArgs
from slack_bolt.oauth.async_oauth_flow import AsyncOAuthFlow
from slack_bolt.oauth.async_oauth_settings import AsyncOAuthSettings
from slack_bolt.response import BoltResponse
from slack_sdk.oauth.token_rotation.async_rotator import AsyncTokenRotator
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.web.async_slack_response import AsyncSlackResponse
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from botservice.errors import BotServiceError
from botservice.storage import Storage
from botservice.storage.encryption import Cipher
from transports.slack.manifest import bot_scopes
from transports.slack.workspaces.installations import STATE_SECONDS, InstallationStore, StateStore
from transports.slack.workspaces.token_rotation import TokenRotation

logger = logging.getLogger(__name__)

INSTALL_PATH = "/slack/install"
REDIRECT_PATH = "/slack/oauth_redirect"


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

    def __init__(self, app: OAuthApp, api_url: str) -> None:
        client = _InstallationClient(base_url=api_url, retry_handlers=[])
        rotator = AsyncTokenRotator(client_id=app.client_id, client_secret=app.client_secret, client=client)
        self.store = InstallationStore(app.cipher, TokenRotation(app.cipher, rotator))
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
            return PlainTextResponse("This is not how Slack sends people back.\n", 400)


def _later() -> Response:
    return PlainTextResponse("This is not possible at the moment: try again in a minute.\n", 503)


async def _succeed(args: AsyncSuccessArgs) -> BoltResponse:
    name = args.installation.team_name or args.installation.enterprise_name or "the workspace"
    return _page(200, f"The bot is installed in {name}. You can close this page and write to it in Slack.")


async def _fail(args: AsyncFailureArgs) -> BoltResponse:
    logger.warning("slack.not_installed", extra={"reason": args.reason})
    if args.reason == "access_denied":
        return _page(200, "Nothing was installed.")
    text = "The installation was not completed. Start again from the page that sent you to Slack."
    return _page(args.suggested_status_code, text)


def _page(status: int, text: str) -> BoltResponse:
    return BoltResponse(status=status, headers={"content-type": "text/plain; charset=utf-8"}, body=f"{text}\n")
