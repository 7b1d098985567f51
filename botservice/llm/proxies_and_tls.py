"""How servers are reached: the authorities that are trusted, and the proxy of the environment, named for errors."""

import os
import ssl
from functools import lru_cache
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import certifi

from botservice.core.errors import SettingsError

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


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return the authorities that are trusted; all clients share them, because reading them takes long.

    Source: httpx, "SSL": `SSL_CERT_FILE` and `SSL_CERT_DIR` name others than those of certifi. Importing httpx for it
    would take 7 MiB of every process: it brings a command line along.

    Raises:
        SettingsError: what SSL_CERT_FILE names cannot be read, or holds no certificates.
    """
    if file := os.environ.get("SSL_CERT_FILE"):
        try:
            return ssl.create_default_context(cafile=file)
        except OSError as error:  # among them what ssl says of a file without certificates
            reason = f"SSL_CERT_FILE={file} cannot be read as certificates ({type(error).__name__}): unset it, or name"
            raise SettingsError(f"{reason} a PEM file") from error
    if folder := os.environ.get("SSL_CERT_DIR"):
        return ssl.create_default_context(capath=folder)
    return ssl.create_default_context(cafile=certifi.where())
