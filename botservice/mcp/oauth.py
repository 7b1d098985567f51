"""Signing in to servers by OAuth: the link for a person, their return with a code, and tokens that are renewed.

What a server says of its authorization may lead into no network that only this machine may reach.
"""

import asyncio
import contextlib
import ipaddress
import json
import re
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Final, NoReturn
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, PKCEParameters
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import validate_authorization_response_iss
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthMetadata, OAuthToken
from pydantic import AnyUrl

from botservice.agent.page_addresses import is_public
from botservice.agent.page_download import Resolve, look_up
from botservice.core.loopback import is_loopback
from botservice.mcp.config import ServerConfig
from botservice.mcp.failures import ServerDown
from botservice.mcp.http_and_stdio import ConnectionState, http_client
from botservice.mcp.sign_ins import SignIn, SignIns, TokenGrant
from botservice.storage.database import Storage

_SECONDS: Final = 30.0
_EARLY_SECONDS: Final = 30.0  # so that a token does not end on its way
_RENEWING_SECONDS: Final = _SECONDS + 10  # so long others wait for who may have been killed
_PAUSE_SECONDS: Final = 0.2
_LONGEST_LINK: Final = 2_000  # what buttons and browsers of every platform take
_LONGEST_TOKEN: Final = 16_000
_TOKEN: Final = re.compile(r"[!-~]+")  # RFC 6750, 2.1, and a little more: what a header can hold
_LARGEST_ANSWER: Final = 1024 * 1024
_LARGEST_GRANT: Final = 64_000  # characters of what it says of itself
_FOR_A_WHILE: Final = (httpx2.codes.REQUEST_TIMEOUT, httpx2.codes.TOO_MANY_REQUESTS)
_LONGEST_SECONDS: Final = 10 * 365 * 24 * 3600
_HELLO: Final = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "botservice", "version": "1"},
    },
}


_PEER: Final = "server_addr"


class Reach:
    """The addresses that may be asked for one server.

    Attributes:
        is_inside: Whether the server itself answered from a network of this machine's own: then its authorization may
            be there, too. What its name leads to is for its owner to say, at any moment; where it answers from is not.
    """

    def __init__(self, url: str, *, is_inside: bool = False, resolve: Resolve = look_up) -> None:
        self.is_inside = is_inside
        self._own = httpx2.URL(url)
        self._resolve = resolve

    async def look(self, request: httpx2.Request) -> None:
        """Return if a request may be made."""
        url = request.url
        if self._is_own(url) or self.is_inside:
            return
        if url.scheme != "https" or await self._are_public(url) != {True}:
            raise ServerDown("its authorization is at an address that is not asked")

    async def note(self, response: httpx2.Response) -> None:
        """Note where the server itself answers from."""
        stream = response.extensions.get("network_stream")
        peer = None if stream is None else stream.get_extra_info(_PEER)
        url = response.request.url
        if self._is_own(url) and peer is not None:
            # Both: behind a proxy, it is the proxy that answers.
            self.is_inside = not is_public(str(peer[0])) and await self._are_public(url) == {False}

    def _is_own(self, url: httpx2.URL) -> bool:
        own = self._own
        return (url.scheme, url.host, url.port) == (own.scheme, own.host, own.port)

    async def _are_public(self, url: httpx2.URL) -> set[bool]:
        """Return whether the numbers of an address are of the public internet: both where some are, none if unknown."""
        try:
            return {is_public(str(ipaddress.ip_address(url.host)))}
        except ValueError:
            with contextlib.suppress(OSError, UnicodeError):
                return set(map(is_public, await self._resolve(url.host, url.port or 443)))
        return set()


class SignInRefused(Exception):
    """A server's authorization gives no tokens, and will not by asking again."""


class _LinkFound(Exception):
    """The package has found where a person signs in."""

    def __init__(self, link: str) -> None:
        super().__init__()
        self.link = link


class _Client:
    """What the package asks for: no tokens, and the client that the file names, where it names one."""

    def __init__(self, config: ServerConfig, redirect_uri: str) -> None:
        self._config = config
        self._redirect_uri = redirect_uri

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep nothing: a person's tokens are asked for when they return."""

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        if self._config.client_id is None:
            return None
        method = "none" if self._config.client_secret is None else "client_secret_post"
        return OAuthClientInformationFull(
            client_id=self._config.client_id,
            client_secret=self._config.client_secret,
            token_endpoint_auth_method=method,
            redirect_uris=[AnyUrl(self._redirect_uri)],
        )

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep nothing: the grant does."""


async def begin(
    config: ServerConfig, redirect_uri: str, keep: Callable[[TokenGrant], Awaitable[str]], *, language: str | None
) -> str:
    """Return the link by which one person signs in.

    Discovery, registration and the address are the package's; state and PKCE are put in here, so that the person may
    return to any process.

    Args:
        keep: Stores what the return needs, and gives the state of it.

    Raises:
        ServerDown: there is no way to sign in; the message says why.
    """
    assert config.url is not None  # noqa: S101 - a command has no login
    metadata = OAuthClientMetadata(
        client_name="botservice", redirect_uris=[AnyUrl(redirect_uri)], application_type="web"
    )
    provider = OAuthClientProvider(
        config.url, metadata, _Client(config, redirect_uri), redirect_handler=_found, callback_handler=_never
    )
    reach = Reach(config.url)
    link = await _ask_for_link(config, provider, reach)
    pkce, context = PKCEParameters.generate(), provider.context
    if context.oauth_metadata is None or context.client_info is None:
        raise ServerDown("it does not say where people sign in")
    grant = TokenGrant(
        config.url,
        redirect_uri,
        context.client_info.model_dump(mode="json", exclude_none=True),
        context.oauth_metadata.model_dump(mode="json", exclude_none=True),
        context.get_resource_url() if context.should_include_resource_param(context.protocol_version) else None,
        pkce.code_verifier,
        language,
        reach.is_inside,
    )
    page = str(context.oauth_metadata.authorization_endpoint)
    _check_link(link, grant)
    ours = {"state": await keep(grant), "code_challenge": pkce.code_challenge}
    return _put_together(page, {**dict(parse_qsl(link[len(page) + 1 :])), **ours})


def _put_together(page: str, asked: Mapping[str, str]) -> str:
    """Return the address of a page, which may have a query of its own (RFC 6749, 3.1), with what is asked of it."""
    parts = urlsplit(page)
    own = parse_qsl(parts.query, keep_blank_values=True)
    return urlunsplit(parts._replace(query=urlencode({**dict(own), **asked}), fragment=""))


def _check_link(link: str, grant: TokenGrant) -> None:
    """Return if a person can be sent to a link."""
    if len(json.dumps([grant.client, grant.metadata])) > _LARGEST_GRANT:
        raise ServerDown("its authorization says too much of itself")
    parts = urlsplit(link)
    is_near = is_loopback(parts.hostname or "") and is_loopback(urlsplit(grant.url).hostname or "")
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and is_near)
    if not is_safe or parts.username or len(link) > _LONGEST_LINK:
        raise ServerDown("its page for signing in is at an address that nobody can be sent to")


async def finish(config: ServerConfig, grant: TokenGrant, query: Mapping[str, str]) -> SignIn:
    """Return what a person who came back has of a server from now on.

    Raises:
        SignInRefused: it gives nothing for that.
        ServerDown: it cannot be asked now.
    """
    metadata = OAuthMetadata.model_validate(grant.metadata)
    try:
        validate_authorization_response_iss(query.get("iss"), metadata)
    except OAuthFlowError:
        raise SignInRefused from None
    if not query.get("code"):
        raise SignInRefused
    asked = {"grant_type": "authorization_code", "code": query["code"], "redirect_uri": grant.redirect_uri}
    token = await _ask_for_token(config, grant, {**asked, "code_verifier": grant.verifier})
    return _signed_in(SignIn(0, config.prefix, grant, ""), token)


class PersonalAuth(httpx2.Auth):
    """Sends one person's token to the server that it is for, and has it renewed.

    Attributes:
        is_refused: Whether the server takes it no more: the person has to sign in again.
        is_waiting: Whether it is to be renewed, and the authorization could not be asked when it was last tried.
    """

    def __init__(
        self, config: ServerConfig, sign_ins: SignIns, storage: Storage, identity_id: int, has: SignIn
    ) -> None:
        self.is_refused = self.is_waiting = False
        self.signed_in = has
        self._config = config
        self._sign_ins = sign_ins
        self._storage = storage
        self._identity_id = identity_id
        self._lock = asyncio.Lock()

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """Add the token; where it is refused, renew it and try once more."""
        ends_at = self.signed_in.expires_at
        if ends_at is not None and time.time() > ends_at - _EARLY_SECONDS:
            await self._renew(self.signed_in.access_token)
        sent = self.signed_in.access_token
        request.headers["Authorization"] = f"Bearer {sent}"
        response = yield request
        if response.status_code != httpx2.codes.UNAUTHORIZED:
            return
        if await self._renew(sent):
            request.headers["Authorization"] = f"Bearer {self.signed_in.access_token}"
            response = yield request
        if response.status_code == httpx2.codes.UNAUTHORIZED and not (self.is_refused or self.is_waiting):
            await self._give_up()

    async def _renew(self, used: str) -> bool:
        """Return whether there is another token than the one that was used."""
        async with self._lock:
            self.is_waiting = False
            if not await self._is_ours_to_renew(used):
                return not self.is_refused and self.signed_in.access_token != used
            has = self.signed_in
            asked = {"grant_type": "refresh_token", "refresh_token": has.refresh_token or ""}
            try:
                self.signed_in = _signed_in(has, await _ask_for_token(self._config, has.grant, asked))
            except SignInRefused:
                return False
            except ServerDown:
                self.is_waiting = True
                return False
            finally:
                await self._sign_ins.renew(self._storage, self.signed_in)
            return True

    async def _is_ours_to_renew(self, used: str) -> bool:
        """Return whether this process is to renew a token, once no other does: many servers end what is asked twice."""
        while True:
            await self._read_again()
            has, now = self.signed_in, time.time()
            if self.is_refused or has.access_token != used or has.refresh_token is None:
                return False
            is_elsewhere = 0 < (has.renewing_until or 0) - now <= _RENEWING_SECONDS
            if not is_elsewhere and await self._sign_ins.reserve(self._storage, has, now + _RENEWING_SECONDS):
                return True
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _read_again(self) -> None:
        config = self._config
        found = await self._sign_ins.find(self._storage, self._identity_id, config.prefix, config.url or "")
        if found is None or found.id != self.signed_in.id:
            self.is_refused = True
        else:
            self.signed_in = found

    async def _give_up(self) -> None:
        self.is_refused = True
        await self._sign_ins.drop(self._storage, self.signed_in.id)


async def _ask_for_link(config: ServerConfig, provider: OAuthClientProvider, reach: Reach) -> str:
    try:
        async with asyncio.timeout(_SECONDS), _authorization(reach, provider) as client:
            headers = {"accept": "application/json, text/event-stream"}
            response = await client.post(config.url or "", json=_HELLO, headers=headers)
    except _LinkFound as found:
        return found.link
    except (TimeoutError, httpx2.HTTPError, httpx2.StreamError):
        raise ServerDown("it cannot be reached to sign in") from None
    except (OAuthFlowError, httpx2.InvalidURL, ValueError) as error:
        raise ServerDown(f"it cannot be signed in to ({type(error).__name__})") from None
    raise ServerDown(f"it wants nobody to sign in ({response.status_code})")


async def _ask_for_token(config: ServerConfig, grant: TokenGrant, asked: Mapping[str, str]) -> OAuthToken:
    """Return the tokens that an authorization gives."""
    client_info = OAuthClientInformationFull.model_validate(grant.client)
    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(grant.redirect_uri)])
    kept = _Client(config, grant.redirect_uri)
    context = OAuthContext(grant.url, metadata, kept, None, None, client_info=client_info)
    asked = {**asked, "client_id": client_info.client_id} | ({"resource": grant.resource} if grant.resource else {})
    data, headers = context.prepare_token_auth(dict(asked), {"accept": "application/json"})
    reach = Reach(grant.url, is_inside=grant.is_inside)
    try:
        async with asyncio.timeout(_SECONDS), _authorization(reach, None) as client:
            response = await client.post(str(grant.metadata["token_endpoint"]), data=data, headers=headers)
            if httpx2.codes.is_client_error(response.status_code) and response.status_code not in _FOR_A_WHILE:
                raise SignInRefused
            token = OAuthToken.model_validate_json(response.raise_for_status().content)
            length = max(len(token.access_token), len(token.refresh_token or ""))
            if length > _LONGEST_TOKEN or not _TOKEN.fullmatch(token.access_token):
                raise ServerDown("its authorization gives tokens that are no tokens")
            return token
    except (TimeoutError, httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, ValueError) as error:
        raise ServerDown(f"its authorization gives no tokens ({type(error).__name__})") from None


def _signed_in(before: SignIn, token: OAuthToken) -> SignIn:
    return replace(
        before,
        renewing_until=None,
        access_token=token.access_token,
        refresh_token=token.refresh_token or before.refresh_token,
        expires_at=None if token.expires_in is None else time.time() + min(max(token.expires_in, 0), _LONGEST_SECONDS),
    )


@contextlib.asynccontextmanager
async def _authorization(reach: Reach, auth: httpx2.Auth | None) -> AsyncGenerator[httpx2.AsyncClient]:
    """Yield a client for what a server says is its authorization."""
    async with http_client({}, ConnectionState(), auth, largest=_LARGEST_ANSWER) as client:
        client.event_hooks["request"].append(reach.look)
        client.event_hooks["response"].append(reach.note)
        yield client


async def _found(link: str) -> None:
    raise _LinkFound(link)


async def _never() -> NoReturn:
    raise OAuthFlowError("the person returns to a page of the service")
