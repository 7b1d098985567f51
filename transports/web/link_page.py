"""The page that a link of /web opens: it says as whom one will chat. Only the press of its button uses it up."""

import logging

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from botservice.texts import in_language
from transports.web.logged_in_browsers import Browsers
from transports.web.login_attempts import Guesses
from transports.web.owner_token import LOGIN_COOKIE, LOGIN_SECONDS, PageAccess
from transports.web.pages import HEADERS, PageRenderer
from transports.web.sessions import drop_session, set_cookie

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
        account = asker.label.plain
        return self._page(request, 200, _say(request, "web.page_whose", account=account))

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
            title=_say(request, "web.page_title"),
            whose=whose,
            chat=_say(request, "web.page_chat"),
            warning=_say(request, "web.page_warning"),
            button=_say(request, "web.page_button"),
            gone=_say(request, "web.page_gone"),
        )


def _say(request: Request, key: str, **values: object) -> str:
    return in_language(key, language_of(request), **values)


def language_of(request: Request) -> str:
    """Return the language that a browser asks for first, such as "de"."""
    first = request.headers.get("accept-language", "").partition(",")[0].partition(";")[0].strip()
    code = first.partition("-")[0].lower()
    return code if code.isascii() and code.isalpha() and len(code) <= 3 else "en"
