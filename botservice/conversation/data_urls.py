"""Images inside prompts: data URLs, apart and together again."""

import hashlib
from base64 import b64decode, b64encode
from binascii import Error


def write_data_url(mime_type: str, data: bytes) -> str:
    """Return data as a data URL (RFC 2397)."""
    return f"data:{mime_type};base64,{b64encode(data).decode('ascii')}"


def read_data_url(url: str) -> tuple[str, str, bytes] | None:
    """Return the SHA-256 digest, MIME type and bytes of a data URL as `write_data_url` makes it; None for others."""
    head, _, body = url.partition(",")
    mime_type = head.removeprefix("data:").removesuffix(";base64")
    if head != f"data:{mime_type};base64":
        return None
    try:
        data = b64decode(body, validate=True)
    except Error:
        return None
    if write_data_url(mime_type, data) != url:
        return None
    return hashlib.sha256(data).hexdigest(), mime_type, data
