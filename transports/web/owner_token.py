"""Who gets in: a token, or, where none is set, this machine alone.

| ADMIN_TOKEN | listener                          | the pages                                                    |
|-------------|-----------------------------------|--------------------------------------------------------------|
| set         | any                               | ask for it: a login form, or `Authorization: Bearer`         |
| unset       | loopback, and PUBLIC_URL is unset | answer to a loopback Host, and to nothing that was forwarded |
| unset       | any other                         | are off                                                      |

Where WEB_ACCESS is link, people come in as well, each to their own chat: see `links.py`.
"""

import hashlib
import hmac
import ipaddress
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self
from urllib.parse import SplitResult, urlsplit

from cachetools import TTLCache
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import HTTPConnection

from botservice.config.settings import Settings, reveal
from botservice.core.loopback import is_loopback
from botservice.core.policies import WebAccess
from transports.common.requests import bearer_of, is_same

LOGIN_COOKIE: Final = "botservice-login"
LOGIN_SECONDS: Final = 30 * 24 * 3600

_HEADERS_OF_PROXIES: Final = """cf-connecting-ip client-ip fastly-client-ip fly-client-ip forwarded true-client-ip via
x-azure-clientip x-client-ip x-cluster-client-ip x-envoy-external-address x-original-host x-original-url x-real-ip
x-rewrite-url"""
_FORWARDING: Final = frozenset(_HEADERS_OF_PROXIES.split())
_FORWARDING_PREFIX: Final = "x-forwarded"
_OWN_FETCHES: Final = frozenset({"same-origin", "none"})


class Mode(StrEnum):
    """What the pages ask of a visitor."""

    OFF = "off"
    LOCAL = "local"  # to come from this machine
    TOKEN = "token"  # noqa: S105 - a name, no secret


class Verdict(StrEnum):
    """What a visitor is told."""

    WELCOME = "welcome"
    LOG_IN = "log_in"
    FORBIDDEN = "forbidden"
    OFF = "off"


@dataclass(frozen=True, slots=True)
class PageAccess:
    """Decides who gets in.

    Attributes:
        port: Only to say where the page is.
        now: Seconds since 1970, by which logins end.
        has_links: Whether people come in by links that /web gives them.
    """

    host: str = "127.0.0.1"
    public_url: str | None = None
    admin_token: str | None = field(default=None, repr=False)
    port: int | None = None
    now: Callable[[], float] = time.time
    has_links: bool = False

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Return what the settings say."""
        has_links = settings.web_access is WebAccess.LINK and settings.public_url is not None
        token = reveal(settings.admin_token)
        return cls(settings.host, settings.public_url, token, settings.port, has_links=has_links)

    @property
    def mode(self) -> Mode:
        """What the pages ask of a visitor."""
        if self.admin_token:
            return Mode.TOKEN
        return Mode.LOCAL if is_loopback(self.host) and self.public_url is None else Mode.OFF

    def judge(self, request: HTTPConnection) -> Verdict:
        """Return what to tell the sender of a request. A request that changes something is also for `is_own_page`."""
        match self.mode:
            case Mode.OFF:
                return Verdict.OFF
            case Mode.LOCAL:
                return Verdict.WELCOME if _is_local(request) else Verdict.FORBIDDEN
            case Mode.TOKEN:
                bearer = bearer_of(request.headers)
                has_token = self.is_token(bearer) if bearer is not None else self.is_login(self.login_of(request))
                return Verdict.WELCOME if has_token else Verdict.LOG_IN

    def is_own_page(self, headers: Headers) -> bool:
        """Return whether a request that changes something comes from a page of this service, or from no page at all.

        Browsers send Origin with every POST; what has neither that nor Sec-Fetch-Site is a program.
        """
        fetch_site = headers.get("sec-fetch-site")
        if fetch_site is not None and fetch_site not in _OWN_FETCHES:
            return False
        origins = headers.getlist("origin")
        if not origins:
            return True
        origin = _split(origins[0])
        if len(origins) > 1 or origin is None or origin.scheme not in ("http", "https"):
            return False
        own = [headers.get("host", "")]
        if self.public_url is not None:
            own.append(urlsplit(self.public_url).netloc)
        return any(_netloc(origin.scheme, origin.netloc) == _netloc(origin.scheme, each) for each in own if each)

    def is_https(self, request: HTTPConnection) -> bool:
        """Return whether the browser reaches this page by https, as far as one can know."""
        if request.url.scheme == "https" or request.headers.get("x-forwarded-proto") == "https":
            return True
        public = urlsplit(self.public_url or "")
        return public.scheme == "https" and public.netloc.lower() == request.headers.get("host", "").lower()

    def login_of(self, request: HTTPConnection) -> str | None:
        """Return the login cookie that a request brings along."""
        return request.cookies.get(cookie_name(LOGIN_COOKIE, is_https=self.is_https(request)))

    def is_token(self, token: str) -> bool:
        """Return whether token is the ADMIN_TOKEN, in constant time."""
        return self.admin_token is not None and is_same(token, self.admin_token)

    def make_login(self) -> str:
        """Return the value of a login cookie. It is signed with the token, and does not hold it."""
        claim = f"{int(self.now()) + LOGIN_SECONDS}.{secrets.token_urlsafe(16)}"
        return f"{claim}.{self._sign(claim)}"

    def is_login(self, value: str | None) -> bool:
        """Return whether value is a login cookie that was made with this token and has not ended."""
        claim, _, signature = (value or "").rpartition(".")
        expires = claim.partition(".")[0]
        if not (expires.isascii() and expires.isdecimal() and len(expires) < 16):
            return False
        return is_same(signature, self._sign(claim)) and int(expires) > self.now()

    def describe(self) -> str:
        """Return where the page is, or why it is off."""
        match self.mode:
            case Mode.LOCAL:
                return self._address()
            case Mode.TOKEN:
                also = ", and lets people in by /web" if self.has_links else ""
                return f"{self._address()} (asks for ADMIN_TOKEN{also})"
            case Mode.OFF if self.has_links:
                return f"{self._address()} (lets people in by /web; ADMIN_TOKEN opens the inspector)"
            case Mode.OFF:
                return f"off: set ADMIN_TOKEN to open it, because {self._why_off()}"

    def _why_off(self) -> str:
        return "PUBLIC_URL is set" if self.public_url is not None else f"HOST is {self.host}, which others can reach"

    def _address(self) -> str:
        if self.public_url is not None:
            return f"{self.public_url}/"
        host = "localhost" if self.host in ("", "0.0.0.0", "::") else self.host  # noqa: S104 - shown, not bound
        host = f"[{host}]" if ":" in host and not host.startswith("[") else host
        return f"http://{host}/" if not self.port else f"http://{host}:{self.port}/"

    def _sign(self, claim: str) -> str:
        key = (self.admin_token or "").encode("utf-8", "surrogatepass")
        return hmac.new(key, b"botservice web login\0" + claim.encode(), hashlib.sha256).hexdigest()


def cookie_name(name: str, *, is_https: bool) -> str:
    """Return what a cookie is called: by https, browsers then take it from this very host alone."""
    return f"__Host-{name}" if is_https else name


def _is_local(request: HTTPConnection) -> bool:
    """Return whether a request came from this machine, by this machine's own name, and not through a proxy.

    The Host tells a browser that was led here by a foreign DNS name (rebinding) from one that was not.
    """
    hosts = request.headers.getlist("host")
    if len(hosts) != 1 or any(name in _FORWARDING or name.startswith(_FORWARDING_PREFIX) for name in request.headers):
        return False
    address = _split(f"http://{hosts[0]}")
    if address is None or address.netloc != hosts[0] or "@" in hosts[0]:
        return False
    return is_loopback(address.hostname or "") and not _is_elsewhere(request.client.host if request.client else "")


def _is_elsewhere(address: str) -> bool:
    """Return whether address is another machine's; what is no address at all, such as a socket's, is not."""
    try:
        ipaddress.ip_address(address)
    except ValueError:
        return False
    return not is_loopback(address)


def _split(address: str) -> SplitResult | None:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return None
    return parts


def _netloc(scheme: str, netloc: str) -> str:
    """Return netloc in lower case and without the port that its scheme implies."""
    return netloc.lower().removesuffix(":443" if scheme == "https" else ":80")


logger = logging.getLogger(__name__)

_FREE_GUESSES: Final = 5  # of an address; a person mistypes
_FIRST_WAIT_SECONDS: Final = 30.0
_LONGEST_WAIT_SECONDS: Final = 3600.0
_FORGET_SECONDS: Final = 24 * 3600.0
_MOST_IN_A_MINUTE: Final = 60  # over all addresses, also for a guesser who has many
_MINUTE: Final = 60.0
_MOST_ADDRESSES: Final = 10_000
_LONGEST_ADDRESS: Final = 100


@dataclass(slots=True)
class _Record:
    wrong: int = 0
    waits_until: float = 0.0
    was_right: bool = False


class Guesses:
    """Makes addresses that sent wrong tokens wait before the next one is checked."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._records: TTLCache[str, _Record] = TTLCache(_MOST_ADDRESSES, _FORGET_SECONDS, now)
        self._recent: deque[float] = deque()

    def wait_seconds(self, request: HTTPConnection) -> int:
        """Return how long the sender of a request has to wait before a token is checked, 0 for not at all."""
        now, record = self._now(), self._records.get(address_of(request))
        while self._recent and self._recent[0] <= now - _MINUTE:
            self._recent.popleft()
        waits_until = record.waits_until if record is not None else 0.0
        if len(self._recent) >= _MOST_IN_A_MINUTE and (record is None or not record.was_right):
            waits_until = max(waits_until, self._recent[0] + _MINUTE)
        return max(0, -int(-(waits_until - now) // 1))

    def check(self, request: HTTPConnection, what: str) -> None:
        """Refuse a request whose sender has to wait before another token, or whatever it is, is checked."""
        if seconds := self.wait_seconds(request):
            text = f"There were too many wrong {what}. Try again in {seconds} seconds."
            raise HTTPException(429, text, {"Retry-After": str(seconds)})

    def note_wrong(self, request: HTTPConnection) -> None:
        """Take note of a wrong token, and log whose it was."""
        now, address = self._now(), address_of(request)
        record = self._record(address)
        record.wrong += 1
        beyond = record.wrong - _FREE_GUESSES
        if beyond >= 0:
            record.waits_until = now + min(_FIRST_WAIT_SECONDS * 2 ** min(beyond, 20), _LONGEST_WAIT_SECONDS)
        self._recent.append(now)
        logger.warning("web.login_refused", extra={"address": address, "wrong_tokens": record.wrong})

    def note_right(self, request: HTTPConnection) -> None:
        """Take note of a right token."""
        record = self._record(address_of(request))
        record.wrong, record.waits_until, record.was_right = 0, 0.0, True

    def _record(self, address: str) -> _Record:
        record = self._records.get(address) or _Record()
        self._records[address] = record  # it is kept for a day from now on
        return record


def address_of(request: HTTPConnection) -> str:
    """Return where a request comes from: the other end, and whom the nearest proxy names.

    A client that reaches this service without a proxy can name any address: hence the count over all addresses.
    """
    direct = request.client.host if request.client is not None else "unknown"
    named = ",".join(request.headers.getlist("x-forwarded-for")).rpartition(",")[2].strip()
    shown = "".join(each for each in named if each.isascii() and (each.isalnum() or each in ".:[]"))
    return f"{direct} for {shown[:_LONGEST_ADDRESS]}" if shown else direct
