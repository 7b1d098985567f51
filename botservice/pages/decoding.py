"""The bytes of a page: unpacked within bounds, and as text in whatever encoding they are written."""

import codecs
import re
import zlib
from typing import Final

from botservice.errors import PageRefused

_PIECE: Final = 65_536
_MARKS: Final = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_META: Final = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{2,40})", re.IGNORECASE)
_HEAD: Final = 4_096
# Python knows encodings that are programs, or no encodings at all: these are those of pages.
_KNOWN: Final = re.compile(
    r"utf-?(8|16(-?[lb]e)?)|(us-)?ascii|latin-?1|iso-?8859-\d{1,2}|(windows|cp)-?125\d|koi8-[ru]|macintosh|tis-620"
    r"|shift[_-]jis|sjis|euc-(jp|kr)|iso-2022-jp|ks_c_5601-1987|gb2312|gbk|gb18030|big5(-hkscs)?",
    re.IGNORECASE,
)


class Unpacker:
    """Unpacks a body piece by piece, up to a bound."""

    def __init__(self, encoding: str, most_bytes: int) -> None:
        """Make one for a Content-Encoding."""
        if encoding not in ("", "identity", "gzip", "x-gzip"):
            raise PageRefused("the page is packed in a way that was not asked for")
        self._zlib = zlib.decompressobj(16 + zlib.MAX_WBITS) if "gzip" in encoding else None
        self._left = most_bytes
        self.data = bytearray()

    @property
    def is_full(self) -> bool:
        """Whether there is more than may be read."""
        return self._left < 0

    def add(self, piece: bytes) -> None:
        """Take the next piece."""
        while piece and not self.is_full:
            if self._zlib is None:
                unpacked, piece = piece, b""
            else:
                try:
                    unpacked = self._zlib.decompress(piece, _PIECE)
                except zlib.error:
                    raise PageRefused("the page is damaged") from None
                piece = b"" if self._zlib.eof else self._zlib.unconsumed_tail
            self.data += unpacked[: max(self._left, 0)]
            self._left -= len(unpacked)


def decode(data: bytes, charset: str | None) -> str:
    """Return the text of a page."""
    marked = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    meta = _META.search(data[:_HEAD])
    named = [charset, meta[1].decode("ascii") if meta else None]
    for name in [marked, *(each for each in named if each and _KNOWN.fullmatch(each)), "utf-8"]:
        if name is None:
            continue
        try:
            return data.decode(name)
        except (LookupError, UnicodeDecodeError):
            continue
    if _is_nearly_utf8(data):
        return data.decode("utf-8", "replace")
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:  # to replace each sign that it does not know takes seconds
        return data.decode("latin-1")


def _is_nearly_utf8(data: bytes) -> bool:
    """Return whether few bytes are wrong: a page that was cut in the middle of a sign, say."""
    wrong = data.decode("utf-8", "replace").count("\ufffd")
    return wrong * 100 < len(data)
