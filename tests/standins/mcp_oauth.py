"""An MCP server that takes nobody who has not signed in, with its authorization: strict, and all on loopback."""

import contextlib
import secrets
import socket
import time
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from mcp_types import ToolAnnotations
from pydantic import AnyHttpUrl
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from standins.web_server import WebServer


class Accounts:
    """Who may sign in, and what was given to them. Codes and refresh tokens are good once; a second use ends all.

    Attributes:
        who: Who sits before the browser now; None where they do not agree.
        lasts_seconds: How long access tokens are good.
        said_seconds: What is said of that, where it is something else.
        pads: How many letters tokens have besides.
        failing_with: The status with which no tokens are given for a while; None where they are.
    """

    def __init__(self) -> None:
        self.who: str | None = "alice"
        self.lasts_seconds = 3600
        self.said_seconds: int | None = None
        self.pads = 0
        self.failing_with: int | None = None
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.used: set[str] = set()
        self.refreshed = 0
        self.calls: list[str | None] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        if self.who is None:
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_urlsafe(32),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=True,
            resource=params.resource,
            subject=self.who,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        if self.codes.pop(authorization_code.code, None) is None:
            raise TokenError("invalid_grant")
        return self._give(client.client_id, authorization_code.subject, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        if refresh_token in self.used:
            self.revoke()
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.refresh.pop(refresh_token.token)
        self.used.add(refresh_token.token)
        self.refreshed += 1
        return self._give(client.client_id, refresh_token.subject, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    async def exchange_identity_assertion(self, client: OAuthClientInformationFull, params: Any) -> OAuthToken:
        raise TokenError("unsupported_grant_type")

    def revoke(self) -> None:
        """Take back all that was given."""
        self.access.clear()
        self.refresh.clear()

    def outdate(self) -> None:
        """Have all access tokens end; they can be renewed."""
        self.access.clear()

    def _give(self, client_id: str, who: str | None, resource: str | None) -> OAuthToken:
        given: dict[str, Any] = {"client_id": client_id, "scopes": ["notes"], "resource": resource, "subject": who}
        access, refresh = f"access-{secrets.token_urlsafe(24)}{'x' * self.pads}", f"refresh-{secrets.token_urlsafe(24)}"
        self.access[access] = AccessToken(token=access, expires_at=int(time.time()) + self.lasts_seconds, **given)
        self.refresh[refresh] = RefreshToken(token=refresh, **given)
        seconds = self.lasts_seconds if self.said_seconds is None else self.said_seconds
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=seconds, scope="notes")


def _build(accounts: Accounts, origin: str) -> MCPServer:
    server = MCPServer(
        "wiki",
        auth_server_provider=accounts,
        auth=AuthSettings(
            issuer_url=AnyHttpUrl(origin),
            resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
            required_scopes=["notes"],
            validate_token_resource=True,
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=["notes"], default_scopes=["notes"]
            ),
        ),
    )

    @server.tool(annotations=ToolAnnotations(read_only_hint=True))
    def whoami() -> str:
        """Tell whose notes these are."""
        token = get_access_token()
        accounts.calls.append(None if token is None else token.subject)
        return "nobody" if token is None else str(token.subject)

    @server.tool()
    def write(text: str) -> str:
        """Write a note."""
        token = get_access_token()
        accounts.calls.append(None if token is None else token.subject)
        return f"written for {None if token is None else token.subject}"

    return server


@contextlib.asynccontextmanager
async def wiki() -> AsyncIterator[tuple[Accounts, str]]:
    """Serve until the block is left; yield who may sign in, and the server's address."""
    accounts, listener = Accounts(), socket.create_server(("127.0.0.1", 0))
    origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    app = _build(accounts, origin).streamable_http_app()

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope.get("path") == "/token" and accounts.failing_with is not None:
            await Response(status_code=accounts.failing_with)(scope, receive, send)
        else:
            await app(scope, receive, send)

    config = uvicorn.Config(answer, log_config=None, access_log=False, lifespan="on", ws="none")
    async with WebServer(config).serving(listener):
        yield accounts, f"{origin}/mcp"
