"""Pages and what goes with every answer: templates, assets, headers, and errors in plain words."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from botservice.config.setting_choices import DEFAULT_BOT_NAME
from botservice.telemetry.logs import redact

if TYPE_CHECKING:
    from jinja2 import Environment

HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
        "manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
    "Referrer-Policy": "same-origin",  # no-referrer would make the login form's Origin "null"
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}

_TYPES: Final = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "png": "image/png",
    "svg": "image/svg+xml",
}
_WORDS: Final = {
    HTTPStatus.NOT_FOUND: "There is nothing at this address.",
    HTTPStatus.METHOD_NOT_ALLOWED: "This address does not take that kind of request.",
    HTTPStatus.INTERNAL_SERVER_ERROR: "Something went wrong on this side. It has been noted in the log.",
}


@dataclass(frozen=True, slots=True)
class Asset:
    """A file that pages load."""

    content: bytes
    media_type: str
    version: str


class Assets:
    """The files in this package's folder `static`."""

    def __init__(self) -> None:
        folder = resources.files("transports.web") / "static"
        self._assets = {file.name: _read_asset(file.name, file.read_bytes()) for file in folder.iterdir()}

    def url(self, name: str) -> str:
        """Return the address of an asset, which changes with what is in it."""
        return f"/web/static/{name}?v={self._assets[name].version}"

    async def serve(self, request: Request) -> Response:
        """Answer with the asset that a request names."""
        asset = self._assets.get(request.path_params["name"])
        if asset is None:
            raise HTTPException(404)
        is_current = request.query_params.get("v") == asset.version
        caching = "public, max-age=31536000, immutable" if is_current else "no-cache"
        return Response(asset.content, media_type=asset.media_type, headers={**HEADERS, "Cache-Control": caching})


class PageRenderer:
    """Makes HTML. Everything that goes into a template is escaped, and a secret is never in it."""

    def __init__(self, assets: Assets, bot_name: str = DEFAULT_BOT_NAME) -> None:
        self._assets = assets
        self._named = {
            "service_name": bot_name,
            "initial": bot_name[0].upper(),
            "is_named": bot_name != DEFAULT_BOT_NAME,
        }

    def show(
        self, template: str, *, status: int = 200, headers: Mapping[str, str] | None = None, **values: Any
    ) -> Response:
        """Answer with a page."""
        html = _templates(self._assets).get_template(template).render(self._named | values)
        return HTMLResponse(html, status, headers={**HEADERS, **(headers or {})})

    async def manifest(self, request: Request) -> Response:  # noqa: ARG002 - an endpoint
        """Answer with what a browser installs the chat by."""
        headers = {"Cache-Control": "no-cache", "Content-Type": "application/manifest+json"}
        return self.show("app.webmanifest", headers=headers)

    def refuse(self, request: Request, status: int, text: str, headers: Mapping[str, str] | None = None) -> Response:
        """Answer in plain words that something is not to be had: a page to a person, JSON to the page's script.

        Only a browser that a person leads to an address asks for HTML; scripts of the pages and programs do not.
        """
        path = request.url.path
        if is_for_a_person(request):
            values = {"title": HTTPStatus(status).phrase, "text": text, "is_inspector": is_of_inspector(path)}
            return self.show("problem.html", status=status, headers=headers, **values)
        if path.startswith("/web/"):
            return JSONResponse({"error": text}, status, headers={**HEADERS, **(headers or {})})
        return PlainTextResponse(f"{text}\n", status, headers={**HEADERS, **(headers or {})})

    @property
    def exception_handlers(self) -> Mapping[Any, Any]:
        """What Starlette is to do with errors."""
        return {HTTPException: self.on_http_error, Exception: self.on_crash}

    async def on_http_error(self, request: Request, error: Exception) -> Response:
        """Answer a request that is refused, also because there is no such address, or none for this method."""
        assert isinstance(error, HTTPException)  # noqa: S101 - what Starlette calls this for
        phrase = HTTPStatus(error.status_code).phrase
        text = error.detail if error.detail != phrase else _WORDS.get(HTTPStatus(error.status_code), f"{phrase}.")
        return self.refuse(request, error.status_code, text, error.headers)

    async def on_crash(self, request: Request, error: Exception) -> Response:  # noqa: ARG002 - Starlette's signature
        """Answer where something went wrong that should not; the traceback is for the log alone."""
        return self.refuse(request, 500, _WORDS[HTTPStatus.INTERNAL_SERVER_ERROR])


def is_for_a_person(request: Request) -> bool:
    """Return whether the answer to a request is shown as a page, rather than read by a script or a program."""
    return "text/html" in request.headers.get("accept", "")


def is_of_inspector(path: str) -> bool:
    """Return whether a path is one of the inspector's."""
    return f"{path}/".startswith("/inspect/")


@lru_cache(maxsize=1)
def read_assets() -> Assets:
    """Return the files that pages load."""
    return Assets()


@lru_cache(maxsize=1)
def _templates(assets: Assets) -> "Environment":
    """Return the templates, compiled once: where nobody opens a page, what reads them is not loaded."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    templates = Environment(
        loader=PackageLoader("transports.web"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_redacted,
    )
    templates.globals.update(asset=assets.url)
    return templates


def _read_asset(name: str, content: bytes) -> Asset:
    media_type = _TYPES[name.rpartition(".")[2]]
    return Asset(content, media_type, hashlib.sha256(content).hexdigest()[:16])


def _redacted(value: Any) -> Any:
    return redact(value) if type(value) is str else value
