"""The gate before every page: who gets in, which requests may change something, and what is said to the others."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from botservice.core.errors import InboxFull, StorageError
from botservice.texts import in_language
from transports.common.requests import bearer_of
from transports.web.links import Browsers
from transports.web.owner_token import LOGIN_COOKIE, LOGIN_SECONDS, Guesses, Mode, PageAccess, Verdict, cookie_name
from transports.web.pages import HEADERS, PageRenderer, is_for_a_person, is_of_inspector
from transports.web.requests import language_of, read_form
from transports.web.sessions import EndedLogins, browser_of, set_cookie

logger = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]

_MAX_FORM_BYTES: Final = 10_000
_OFF: Final = "This page is off. Set ADMIN_TOKEN to turn it on."
_ELSEWHERE: Final = (
    "This page answers only on the machine it runs on, under http://localhost or http://127.0.0.1. "
    "Set ADMIN_TOKEN to reach it from elsewhere."
)
_OWNER_ALONE: Final = "This is for whoever runs the service alone."
_A_LINK: Final = "This needs a link: write /web to the bot."
_FOREIGN: Final = "This request came from another site, so nothing was done."
_TOKENS: Final = "tokens"
_LOOK_SECONDS: Final = 1.0  # how long an open page may go on after its person lost access
_HTTPS_ALONE: Final = "max-age=31536000"
_CHALLENGE: Final = {"WWW-Authenticate": 'Bearer realm="botservice"'}


class PageAuthentication:
    """Lets requests through to endpoints, or answers them itself."""

    def __init__(self, access: PageAccess, pages: PageRenderer, ended_logins: EndedLogins, browsers: Browsers) -> None:
        self._access = access
        self._pages = pages
        self._ended_logins = ended_logins
        self._browsers = browsers
        self._guesses = Guesses()

    def guard(self, endpoint: Endpoint, *, changes: bool = False) -> Endpoint:
        """Return endpoint for those who may get in.

        Args:
            changes: Whether it changes something: then a request from another site's page is refused.
        """

        async def guarded(request: Request) -> Response:
            login = await self._let_in(request)
            if login is not None:
                return login
            if changes:
                self._check_own_page(request)
            return await self._follow(request, endpoint)

        return self.secure(guarded)

    def secure(self, endpoint: Endpoint, *, changes: bool = False) -> Endpoint:
        """Return endpoint for everybody, with an answer to what it refuses.

        Browsers that came by https come back by https alone.

        Args:
            changes: As for `guard`.
        """

        async def secured(request: Request) -> Response:
            response = await self._answer(request, endpoint, changes=changes)
            if self._access.is_https(request):
                response.headers.setdefault("Strict-Transport-Security", _HTTPS_ALONE)
            return response

        return secured

    async def login_page(self, request: Request) -> Response:
        """Answer with the login form, or with the chat where none is needed."""
        if self._access.mode is Mode.OFF and not self._access.has_links:
            raise HTTPException(404, _OFF)
        if self._access.mode is not Mode.OFF and self._access.judge(request) is not Verdict.LOG_IN:
            return RedirectResponse("/", 303, headers=HEADERS)
        return self._ask_to_log_in(request, "/", status=200)

    async def log_in(self, request: Request) -> Response:
        """Take the token from the login form and give a cookie for it."""
        if self._access.mode is not Mode.TOKEN:
            raise HTTPException(404, _OFF)
        self._check_own_page(request)
        form = await read_form(request, _MAX_FORM_BYTES)
        target = _safe_target(form.get("next", ["/"])[0])
        self._guesses.check(request, _TOKENS)
        if not self._access.is_token(form.get("token", [""])[0].strip()):
            self._guesses.note_wrong(request)
            return self._ask_to_log_in(request, target, status=401, has_failed=True)
        self._guesses.note_right(request)
        response = RedirectResponse(target, 303, headers=HEADERS)
        is_https = self._access.is_https(request)
        set_cookie(response, LOGIN_COOKIE, self._access.make_login(), seconds=LOGIN_SECONDS, is_https=is_https)
        return response

    async def log_out(self, request: Request) -> Response:
        """End the login, also for kept copies of its cookie, and delete the cookie."""
        cookie = self._access.login_of(request)
        if browser_of(request) is not None:
            await self._browsers.close(request)
        elif cookie is not None:
            await self._ended_logins.end(cookie)
        response = RedirectResponse("/", 303, headers=HEADERS)
        is_https = self._access.is_https(request)
        name = cookie_name(LOGIN_COOKIE, is_https=is_https)
        response.delete_cookie(name, path="/", secure=is_https, httponly=True, samesite="lax")
        return response

    async def _judge(self, request: Request) -> Verdict:
        """Return what to tell the sender of a request; wrong tokens in it are counted, and logins may have ended."""
        verdict = self._access.judge(request)
        if self._access.mode is not Mode.TOKEN:
            return verdict
        if bearer_of(request.headers) is not None:
            (self._guesses.note_right if verdict is Verdict.WELCOME else self._guesses.note_wrong)(request)
        elif verdict is Verdict.WELCOME and await self._ended_logins.is_ended(self._access.login_of(request) or ""):
            return Verdict.LOG_IN
        return verdict

    async def _let_in(self, request: Request) -> Response | None:
        """Return None for who may get in, and what asks to log in for who may with that; others are refused."""
        if self._access.mode is Mode.TOKEN and bearer_of(request.headers) is not None:
            self._guesses.check(request, _TOKENS)
        elif (browser := await self._browsers.of(request)) is not None:
            request.state.browser = browser
            if not _is_of_chat(request.url.path):
                raise HTTPException(403, _OWNER_ALONE)
            return None
        match await self._judge(request):
            case Verdict.OFF if self._access.has_links:
                return self._ask_to_log_in(request, "/", status=401)
            case Verdict.OFF:
                raise HTTPException(404, _OFF)
            case Verdict.FORBIDDEN:
                raise HTTPException(403, _ELSEWHERE)
            case Verdict.LOG_IN:
                return self._ask_to_log_in(request, _safe_target(request.url.path), status=401)
            case Verdict.WELCOME:
                return None

    def _check_own_page(self, request: Request) -> None:
        if not self._access.is_own_page(request.headers):
            raise HTTPException(403, _FOREIGN)

    def _ask_to_log_in(self, request: Request, target: str, *, status: int, has_failed: bool = False) -> Response:
        has_token, has_links = self._access.mode is Mode.TOKEN, self._access.has_links
        headers = _CHALLENGE if has_token else {}
        if not is_for_a_person(request):
            return self._pages.refuse(request, status, "This needs ADMIN_TOKEN." if has_token else _A_LINK, headers)
        values = {"target": target, "has_failed": has_failed, "has_token": has_token, "has_links": has_links}
        hint = in_language("web.login_hint", language_of(request))
        return self._pages.show("login.html", status=status, headers=headers, hint=hint, **values)

    async def _follow(self, request: Request, endpoint: Endpoint) -> Response:
        """Return what an endpoint answers; a stream ends when its reader is taken out."""
        response = await endpoint(request)
        if isinstance(response, StreamingResponse):
            response.body_iterator = self._followed(request, response.body_iterator)
        return response

    async def _followed(self, request: Request, stream: AsyncIterable[Any]) -> AsyncIterator[Any]:
        """Yield what a stream yields, as long as its reader may get in."""
        loop = asyncio.get_running_loop()
        looked_at = loop.time()
        async with contextlib.aclosing(stream):  # type: ignore[type-var]  # made from a generator in chat.py
            async for each in stream:
                if loop.time() - looked_at > _LOOK_SECONDS:
                    if not await self._is_still_in(request):
                        return
                    looked_at = loop.time()
                yield each

    async def _is_still_in(self, request: Request) -> bool:
        try:
            return await self._let_in(request) is None
        except (HTTPException, StorageError):  # the page comes back by itself, and is told why
            return False

    async def _answer(self, request: Request, endpoint: Endpoint, *, changes: bool) -> Response:
        try:
            if changes:
                self._check_own_page(request)
            return await endpoint(request)
        except HTTPException as refused:
            return await self._pages.on_http_error(request, refused)
        except InboxFull:
            return self._pages.refuse(request, 503, "Too much is waiting at the moment.", {"Retry-After": "5"})
        except StorageError as error:
            logger.warning("web.storage_unavailable", extra={"reason": str(error)})
            return self._pages.refuse(request, 503, "The database does not answer.", {"Retry-After": "2"})


def _safe_target(path: str) -> str:
    """Return the page to show after a login: never one of another site."""
    return path if is_of_inspector(path) else "/"


def _is_of_chat(path: str) -> bool:
    """Return whether a page is one of the chat's, which show a session what is its own; all others are the owner's."""
    return path == "/" or path.startswith("/web/")
