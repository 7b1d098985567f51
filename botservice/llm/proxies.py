"""Naming the proxy by which a server is asked, for errors: without its user and password."""

from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

THROUGH: Final = " through the proxy "


def through_proxy(address: str) -> str:
    """Return " through the proxy host:port" for an address that the environment names one for, or else nothing.

    Args:
        address: A whole address, of which the scheme, the host and the port count.
    """
    parts, proxies = urlsplit(address), getproxies()
    found = proxies.get(parts.scheme) or proxies.get("all")
    if not found or proxy_bypass(parts.hostname or "") or proxy_bypass(parts.netloc):
        return ""
    return name_proxy(found)


def name_proxy(proxy: str | None) -> str:
    """Return " through the proxy host:port" for a proxy's address, or nothing where there is none."""
    if not proxy:
        return ""
    parts = urlsplit(proxy if "://" in proxy else f"//{proxy}")
    if not parts.hostname:
        return ""
    try:
        port = parts.port
    except ValueError:  # no number
        port = None
    return f"{THROUGH}{parts.hostname}{f':{port}' if port else ''} of the environment"
