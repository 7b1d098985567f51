"""Links of /web: the page that one opens, and the browsers that were logged in by one."""

import logging
from functools import partial
from typing import Final

from starlette.requests import HTTPConnection, Request
from starlette.responses import RedirectResponse, Response

from botservice.people.identities import Browser, Identity, new_secret
from botservice.people.queries import asker_of, close_browser, find_browser, open_browser
from botservice.texts import in_language
from transports.web.backend import Backend
from transports.web.owner_token import LOGIN_COOKIE, LOGIN_SECONDS, Guesses, PageAccess
from transports.web.pages import HEADERS, PageRenderer
from transports.web.requests import language_of
from transports.web.sessions import drop_session, set_cookie

_MARK: Final = "p."  # a login of the owner begins with a digit


class Browsers:
    """Finds the person who was logged in by a link.

    A StorageError of its methods means that the database does not answer.
    """

    def __init__(self, access: PageAccess, backend: Backend) -> None:
        self._access = access
        self._backend = backend

    async def of(self, request: HTTPConnection) -> Browser | None:
        """Return the logged-in browser that sent a request, or None, also for the owner's."""
        cookie, storage = self._access.login_of(request) or "", self._backend.opened
        if not self._access.has_links or not cookie.startswith(_MARK) or storage is None:
            return None
        now = storage.now()
        found = await storage.read(lambda connection: find_browser(connection, cookie, now))
        return found if found is not None and await self._lets_in(found.asker) else None

    async def asker_of(self, secret: str) -> Identity | None:
        """Return the person whose chat a link opens, or None if it opens nothing."""
        storage = self._backend.storage
        now = storage.now()
        asker = await storage.read(lambda connection: asker_of(connection, secret, now))
        return asker if asker is not None and await self._lets_in(asker) else None

    async def open(self, secret: str) -> str | None:
        """Use up a link and return the cookie that logs a browser in, or None if the link opens nothing."""
        if await self.asker_of(secret) is None:
            return None
        storage = self._backend.storage
        cookie, now = f"{_MARK}{new_secret()}", storage.now()
        found = await storage.write(lambda connection: open_browser(connection, secret, cookie, now))
        return None if found is None else cookie

    async def close(self, request: HTTPConnection) -> None:
        """Log out the browser that `of` has found."""
        cookie = self._access.login_of(request) or ""
        await self._backend.storage.write(lambda connection: close_browser(connection, cookie))

    async def _lets_in(self, asker: Identity) -> bool:
        storage, people = self._backend.storage, self._backend.people
        keys = {"transport": asker.platform, "chat_id": asker.platform_id}
        return await people.lets_in(storage, keys, asker.author, is_shared=False)


logger = logging.getLogger(__name__)


class Links:
    """Shows where a link leads, and logs the browser in when its button is pressed."""

    def __init__(self, access: PageAccess, pages: PageRenderer, browsers: Browsers) -> None:
        self._access = access
        self._pages = pages
        self._browsers = browsers
        self._guesses = Guesses()

    async def show(self, request: Request) -> Response:
        """Answer with the person whose chat a link opens; looking, also by programs, does not use it up."""
        asker = await self._browsers.asker_of(request.path_params["secret"])
        if asker is None:
            return self._gone(request)
        whose = in_language("web.page_whose", language_of(request), account=asker.label.plain)
        return self._page(request, 200, whose)

    async def show_without_secret(self, request: Request) -> Response:
        """Answer a link that was cut off before its secret: it is none, and nobody guesses one by it."""
        return self._page(request, 404)

    async def open(self, request: Request) -> Response:
        """Use a link up and log the browser in."""
        cookie = await self._browsers.open(request.path_params["secret"])
        if cookie is None and await self._browsers.of(request) is None:
            return self._gone(request)
        response = RedirectResponse("/", 303, headers=HEADERS)
        if cookie is not None:  # or else the button was pressed twice
            is_https = self._access.is_https(request)
            set_cookie(response, LOGIN_COOKIE, cookie, seconds=LOGIN_SECONDS, is_https=is_https)
            drop_session(response, is_https=is_https)
            logger.info("web.opened_by_link")
        return response

    def _gone(self, request: Request) -> Response:
        """Answer that a link is none. A good one is never kept waiting, whatever others at its address have tried."""
        self._guesses.check(request, "links")
        self._guesses.note_wrong(request)
        return self._page(request, 410)

    def _page(self, request: Request, status: int, whose: str = "") -> Response:
        return self._pages.show(
            "link.html",
            status=status,
            language=language_of(request),
            whose=whose,
            say=partial(in_language, language=language_of(request)),
        )
