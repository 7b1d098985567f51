"""What https connections are checked with."""

import os
import ssl
from functools import lru_cache

import certifi

from botservice.core.errors import SettingsError


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
