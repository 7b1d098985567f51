"""Images as fields of steps take them: files, pictures of PIL, raw bytes with or without their type; and data URLs."""

import hashlib
import io
from base64 import b64decode, b64encode
from binascii import Error
from collections.abc import Iterable
from typing import Any, Final

from botservice.core.errors import InvalidField
from botservice.core.messages import Attachment

_HOW: Final = (
    'give an Attachment("image/png", data=…), a PIL image, ("image/png", bytes), or the bytes of an image file'
)
# Source: https://mimesniff.spec.whatwg.org/#matching-an-image-type-pattern
_SIGNATURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"),
)


def as_images(value: Any, field: str) -> list[Attachment]:
    """Return what a field of images was given, as files.

    Raises:
        InvalidField: something in it is no image, or does not say of what type it is.
    """
    every: Iterable[Any] = [value] if _is_one(value) else value
    return [_as_image(each, field) for each in every]


def as_attachment(value: Any) -> Attachment:
    """Return an attached value as a file of any type, which it has to name.

    Raises:
        InvalidField: it does not say of what type it is.
    """
    file = _as_file(value)
    if isinstance(file, Attachment):
        return file
    raise InvalidField(f"a {type(value).__name__} cannot be attached; {_HOW}")


def as_file(value: Any) -> Any:
    """Return a picture of PIL as a file, and anything else unchanged."""
    return _drawn(value) if _is_picture(value) else value


def _is_one(value: Any) -> bool:
    is_pair = isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str)
    return is_pair or isinstance(value, str) or not isinstance(value, Iterable) or _is_bytes(value)


def _as_image(value: Any, field: str) -> Attachment:
    file = _as_file(value)
    if isinstance(file, Attachment) and file.mime_type.startswith("image/"):
        return file
    what = f"a file of type {file.mime_type}" if isinstance(file, Attachment) else f"a {type(value).__name__}"
    raise InvalidField(f"field {field!r}: {what} is no image that can be kept; {_HOW}")


def _as_file(value: Any) -> Any:
    match value:
        case (str(mime_type), data) if _is_bytes(data):
            return Attachment(mime_type, data=bytes(data))
        case _ if _is_bytes(value):
            sniffed = _sniffed(bytes(value))
            return value if sniffed is None else Attachment(sniffed, data=bytes(value))
        case _:
            return as_file(value)


def _is_bytes(value: Any) -> bool:
    return isinstance(value, bytes | bytearray | memoryview)


def _sniffed(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((mime_type for signature, mime_type in _SIGNATURES if data.startswith(signature)), None)


def _is_picture(value: Any) -> bool:
    """Whether it is an image of PIL, which need not be installed."""
    return any(cls.__module__ == "PIL.Image" and cls.__name__ == "Image" for cls in type(value).__mro__)


def _drawn(picture: Any) -> Attachment:
    paper = io.BytesIO()
    try:
        picture.save(paper, format="PNG")
    except OSError:  # a PNG has no such colours, such as those of print
        paper = io.BytesIO()
        picture.convert("RGB").save(paper, format="PNG")
    return Attachment("image/png", data=paper.getvalue())


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
