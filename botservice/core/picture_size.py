"""How large pictures are shown, from their first bytes: nothing of them is decoded."""

import struct
from collections.abc import Callable
from typing import Final

_LARGEST: Final = 65_535  # pixels
_MOST_SEGMENTS: Final = 1_000  # of a JPEG
_TURNED: Final = (5, 6, 7, 8)  # orientations in which width and height change places (Exif 2.32, 4.6.4)
_NO_SIZE: Final = (0xC4, 0xC8, 0xCC)  # markers among those of frames that begin something else (ITU T.81, B.1.1.3)

Size = tuple[int, int]


def read_picture_size(mime_type: str, data: bytes) -> Size | None:
    """Return the width and height of a picture in pixels as browsers show it; None if its bytes do not say."""
    read = _READERS.get(mime_type)
    try:
        size = None if read is None else read(data)
    except (struct.error, IndexError):
        return None
    return size if size is not None and all(0 < each <= _LARGEST for each in size) else None


def _read_png(data: bytes) -> Size | None:
    width, height = struct.unpack_from(">II", data, 16)
    return (width, height) if data[12:16] == b"IHDR" else None


def _read_gif(data: bytes) -> Size | None:
    width, height = struct.unpack_from("<HH", data, 6)
    return (width, height) if data.startswith(b"GIF8") else None


def _read_webp(data: bytes) -> Size | None:
    """Read the size of each of the three kinds (RFC 9649, 2.5 to 2.7)."""
    kind = data[12:16]
    if kind == b"VP8X":
        return 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little")
    if kind == b"VP8L":
        (bits,) = struct.unpack_from("<I", data, 21)
        return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF)
    if kind == b"VP8 ":
        width, height = struct.unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None


def _read_jpeg(data: bytes) -> Size | None:
    """Walk through the segments up to the frame, which has the size."""
    at, is_turned = 2, False
    for _ in range(_MOST_SEGMENTS):
        while data[at] == 0xFF and data[at + 1] == 0xFF:  # fill bytes
            at += 1
        marker, (length,) = data[at + 1], struct.unpack_from(">H", data, at + 2)
        if data[at] != 0xFF or length < 2:
            return None
        if 0xC0 <= marker <= 0xCF and marker not in _NO_SIZE:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return (height, width) if is_turned else (width, height)
        if marker == 0xE1 and data[at + 4 : at + 10] == b"Exif\0\0":
            is_turned = _read_orientation(data[at + 10 : at + 2 + length]) in _TURNED
        at += 2 + length
    return None


def _read_orientation(exif: bytes) -> int | None:
    """Return how a camera was held, from the first directory of a TIFF (TIFF 6.0, section 2)."""
    order = "<" if exif.startswith(b"II") else ">"
    try:
        (begin,) = struct.unpack_from(f"{order}I", exif, 4)
        (count,) = struct.unpack_from(f"{order}H", exif, begin)
        for entry in range(begin + 2, min(begin + 2 + 12 * count, len(exif) - 11), 12):
            tag, _, _, value = struct.unpack_from(f"{order}HHIH", exif, entry)
            if tag == 0x0112:
                return int(value)
    except struct.error:
        return None
    return None


_READERS: Final[dict[str, Callable[[bytes], Size | None]]] = {
    "image/png": _read_png,
    "image/gif": _read_gif,
    "image/webp": _read_webp,
    "image/jpeg": _read_jpeg,
}
