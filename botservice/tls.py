"""What https connections are checked with."""

import ssl
from functools import lru_cache


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return the authorities that are trusted; all clients share them, because reading them takes long.

    Source: httpx, "SSL": `SSL_CERT_FILE` and `SSL_CERT_DIR` name others than those of certifi.
    """
    import httpx  # here, because not everything that is imported opens connections

    return httpx.create_ssl_context()
