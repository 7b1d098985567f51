"""Reading a page: asked for once, read in a process of its own, and kept for a few minutes."""

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from botservice.agent.page_addresses import PageAddress
from botservice.agent.page_fetching import FetchedPage, PageFetcher, decode
from botservice.agent.reader import HtmlReader, PdfReader, TooMuchToRead
from botservice.core.errors import PageRefused
from botservice.core.messages import storable

_LONGEST_TEXT: Final = 400_000  # characters of one page
_KEPT_SECONDS: Final = 600.0
_MOST_KEPT: Final = 4_000_000  # characters
_MOST_PAGES: Final = 500


@dataclass(frozen=True, slots=True)
class Page:
    """What stands on a page."""

    address: PageAddress
    title: str
    text: str
    is_cut: bool = False


class PageReader:
    """Reads pages, and caches them for ten minutes, in memory."""

    def __init__(
        self,
        fetcher: PageFetcher | None = None,
        *,
        read_html: HtmlReader | None = None,
        most_kept: int = _MOST_KEPT,
        most_pages: int = _MOST_PAGES,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._fetcher = fetcher or PageFetcher()
        self._most_kept = most_kept
        self._most_pages = most_pages
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, Page]] = OrderedDict()
        self._read_html = read_html or HtmlReader()
        self._read_pdf = PdfReader()

    def find(self, address: PageAddress) -> Page | None:
        """Return a page that was read a few minutes ago."""
        until, page = self._kept.get(str(address), (0.0, None))
        return page if until > self._clock() else None

    async def read(self, address: PageAddress) -> Page:
        """Return the text of a page.

        Raises:
            PageRefused: it cannot be had or read; the message says why, and repeats nothing of it.
        """
        known = self.find(address)
        if known is not None:
            return known
        page = await self._extract(await self._fetcher.fetch(address))
        self._keep(str(address), page)
        return page

    async def _extract(self, fetched: FetchedPage) -> Page:
        try:
            title, text = await self._title_and_text(fetched)
        except TooMuchToRead:
            raise PageRefused("reading the page takes too much") from None
        except ValueError:
            raise PageRefused("the page cannot be read") from None
        kept = storable(text[:_LONGEST_TEXT]).strip()
        return Page(fetched.address, storable(title).strip(), kept, fetched.is_cut or len(text) > _LONGEST_TEXT)

    async def _title_and_text(self, fetched: FetchedPage) -> tuple[str, str]:
        match fetched.kind:
            case "pdf":
                return "", await self._read_pdf(fetched.data, _LONGEST_TEXT + 1)
            case "html":
                page = decode(fetched.data, fetched.charset).encode("utf-8", "replace")
                found = await self._read_html(str(fetched.address).encode() + b"\n" + page, _LONGEST_TEXT + 1)
                title, _, text = found.partition("\n")
                return title, text
            case _:
                return "", decode(fetched.data, fetched.charset)

    def _keep(self, address: str, page: Page) -> None:
        self._kept.pop(address, None)
        self._kept[address] = self._clock() + _KEPT_SECONDS, page
        while len(self._kept) > self._most_pages or self._count_kept() > self._most_kept:
            self._kept.popitem(last=False)

    def _count_kept(self) -> int:
        return sum(len(each.text) for _, each in self._kept.values())
