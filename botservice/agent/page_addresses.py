"""Addresses of pages as models and people write them, and which of them may be asked at all."""

import ipaddress
import re
from dataclasses import dataclass
from string import printable
from typing import Final
from urllib.parse import quote

import httpx2

from botservice.core.errors import PageRefused

_LONGEST: Final = 2_000  # characters
_PORTS: Final = {"http": 80, "https": 443}
_NOT_IN_ADDRESSES: Final = re.compile(r"[\s\\\x00-\x20\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
_NAME: Final = re.compile(
    r"(?=.{4,253}\Z)(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])"
)
# Names that mean something of this machine or this network. Source: IANA, "Special-Use Domain Names"; what routers use.
_NOT_PUBLIC: Final = re.compile(
    r"(?:^|\.)(?:localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa|onion|alt|invalid|svc|cluster)$"
)
# What ends an address in a text, besides blanks.
_AROUND: Final = re.compile(r"[\s<>\"'`|{}\[\]()\u2018-\u201f\u00ab\u00bb\u3000-\u3011\uff08\uff09]+")
_STYLES: Final = "*_~"
_BEHIND: Final = f".,;:!?{_STYLES}\u3002\uff0c"


@dataclass(frozen=True, slots=True)
class PageAddress:
    """The address of a page that may be asked.

    Attributes:
        host: A name, or the number of a public machine.
    """

    url: httpx2.URL
    host: str
    port: int

    @classmethod
    def read(cls, text: str) -> "PageAddress":
        """Parse a text as an address.

        Raises:
            PageRefused: it is none, or none of a page on the public web; the message repeats nothing of it.
        """
        text = text.strip()
        if len(text) > _LONGEST or _NOT_IN_ADDRESSES.search(text):
            raise PageRefused("this is no address of a web page")
        if not text.lower().startswith(("http://", "https://")):
            raise PageRefused("only addresses that begin with http:// or https:// are read")
        try:
            return cls._of(httpx2.URL(text))
        except (httpx2.InvalidURL, ValueError, UnicodeError):
            raise PageRefused("this is no address of a web page") from None

    def join(self, location: str) -> "PageAddress":
        """Return where a redirect leads.

        Raises:
            PageRefused: nowhere on the public web.
        """
        if len(location) > _LONGEST or _NOT_IN_ADDRESSES.search(location):
            raise PageRefused("the page leads on to what is no address of a web page")
        try:
            return self._of(self.url.join(location))
        except (httpx2.InvalidURL, ValueError, UnicodeError):
            raise PageRefused("the page leads on to what is no address of a web page") from None

    @classmethod
    def _of(cls, url: httpx2.URL) -> "PageAddress":
        if url.scheme not in _PORTS:
            raise PageRefused("only addresses that begin with http:// or https:// are read")
        if url.userinfo:
            raise PageRefused("addresses with a name or a password in them are not read")
        if url.port not in (None, _PORTS[url.scheme]):
            raise PageRefused("only the usual ports of the web are asked: 80 for http, 443 for https")
        host = url.raw_host.decode("ascii").lower()
        is_name = _NAME.fullmatch(host) is not None and not _NOT_PUBLIC.search(host)
        if not (is_public(host) if _is_number(host) else is_name):
            raise PageRefused("this address leads to no machine of the public internet")
        return cls(url.copy_with(fragment=None), host, _PORTS[url.scheme])

    @property
    def target(self) -> str:
        """What tells pages apart, without http or https, which people leave out."""
        return _exact(str(self.url))

    def __str__(self) -> str:
        return str(self.url)


def addresses_in(text: str) -> frozenset[str]:
    """Return all possible addresses in a text, as `PageAddress.target` spells them.

    Whether the signs around one belong to it is unknown: it is there with them and without.
    """
    parts = [part for part in _AROUND.split(text) if "." in part]
    spelled = frozenset(each for part in parts for each in (part, part.lstrip(_STYLES).rstrip(_BEHIND)))
    return frozenset(_exact(quote(each, safe=printable, errors="replace")) for each in spelled)


def _exact(address: str) -> str:
    """Return an address without what is never sent, or says nothing: a model could hide words in anything else."""
    address = address.partition("#")[0]
    scheme, separator, rest = address.partition("://")
    rest = rest if separator and scheme.lower() in _PORTS else address
    host, slash, path = rest.partition("/")
    host, mark, query = host.partition("?")
    host = host.lower().removesuffix(":443").removesuffix(":80")
    return f"{host}{mark}{query}{slash}{path}".removesuffix("/")


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


# Source: IANA, "IPv4 Special-Purpose Address Registry" and "IPv6 Special-Purpose Address Registry", "IPv4 Multicast".
_NOT_PUBLIC_4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
            *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
            *("224.0.0.0/4", "240.0.0.0/4"),
            "168.63.129.16/32",  # public by its number: what a virtual machine of Azure asks for its secrets
        ),
    )
)
_GLOBAL_6: Final = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        # Teredo is in the first one, 6to4 is the third: both hold an address of version 4.
        ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
)
_ISATAP: Final = frozenset((0x00005EFE, 0x02005EFE))  # before an address of version 4


def is_public(address: str) -> bool:
    """Return whether an address, as numbers, is one of the public internet and holds no other in it."""
    try:
        number = ipaddress.ip_address(address)
    except ValueError:  # also one with a zone
        return False
    if isinstance(number, ipaddress.IPv4Address):
        return not any(number in network for network in _NOT_PUBLIC_4)
    if number.scope_id is not None or number not in _GLOBAL_6:  # mapped, compatible, NAT64, local, multicast: outside
        return False
    return (int(number) >> 32) & 0xFFFFFFFF not in _ISATAP and not any(number in each for each in _NOT_PUBLIC_6)
