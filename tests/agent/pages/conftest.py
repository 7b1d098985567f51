"""A web of the tests' own, and what reads its pages."""

from collections.abc import AsyncIterator

import pytest
from standins.web_pages import PagesWeb

from botservice.agent.fetch_page_tool import PageReader
from botservice.agent.page_download import FetchLimits, PageFetcher


@pytest.fixture
async def web() -> AsyncIterator[PagesWeb]:
    async with PagesWeb().running() as running:
        yield running


@pytest.fixture
def fetcher(web: PagesWeb) -> PageFetcher:
    return PageFetcher(FetchLimits(most_bytes=100_000), resolve=web.resolve, connect=web.connect)


@pytest.fixture
def pages(fetcher: PageFetcher) -> PageReader:
    return PageReader(fetcher)
