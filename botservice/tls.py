"""What https connections are checked with."""

import ssl
from functools import lru_cache

import httpx


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return the authorities that are trusted; all clients share them, because reading them takes long.

    Source: httpx, "SSL": `SSL_CERT_FILE` and `SSL_CERT_DIR` name others than those of certifi.
    """
    return httpx.create_ssl_context()
