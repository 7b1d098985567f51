"""Reading a page: its text with its links, once in ten minutes, and nothing that takes too much."""

import pytest
from attacks.hostile_files import plain
from standins.web_pages import PagesWeb, page

from botservice.agent.document_reader import HtmlReader, PageLimits
from botservice.agent.fetch_page_tool import PageRates, PageReader
from botservice.agent.page_addresses import PageAddress
from botservice.agent.page_download import PageFetcher
from botservice.core.errors import PageRefused

HERE = PageAddress.read("http://site.example/a/b")
ARTICLE = """<html><head><title>Opening
 hours</title><script>evil()</script></head><body><nav><a href=/1>Start</a></nav><main><article><h1>Opening hours</h1>
{}<p>More in <a href="../plan">the plan</a>, not <a href="javascript:x()">here</a>.</p></article></main>
<footer>Imprint</footer></body></html>""".format("<p>The library opens at nine and closes at six.</p>" * 5)


async def test_the_text_of_a_page_has_its_links_and_no_menu(web: PagesWeb, pages: PageReader) -> None:
    web.pages["site.example/a/b"] = page(ARTICLE)
    read = await pages.read(HERE)
    assert read.title == "Opening hours"
    assert "The library opens at nine" in read.text
    assert "the plan (http://site.example/plan)" in read.text
    assert not any(word in read.text for word in ("evil", "Start", "Imprint", "javascript"))


async def test_a_page_without_an_article_is_read_whole(web: PagesWeb, pages: PageReader) -> None:
    web.pages["site.example/a/b"] = page("<title>Price</title><h1>Widget</h1><div>Price: 42</div>")
    assert (await pages.read(HERE)).text.split() == ["Widget", "Price:", "42"]


@pytest.mark.parametrize("kind", ["application/json", "text/plain", "application/rss+xml", "text/csv"])
async def test_texts_are_given_as_they_are(web: PagesWeb, pages: PageReader, kind: str) -> None:
    web.pages["site.example/a/b"] = page('{"a": [1]}', kind)
    assert (await pages.read(HERE)).text == '{"a": [1]}'


async def test_pdfs_are_read_too(web: PagesWeb, pages: PageReader) -> None:
    web.pages["site.example/a/b"] = page(plain("Hello"), "application/pdf")
    assert (await pages.read(HERE)).text == "Hello"
    web.pages["site.example/c"] = page(b"no pdf", "application/pdf")
    with pytest.raises(PageRefused, match="cannot be read"):
        await pages.read(PageAddress.read("http://site.example/c"))


@pytest.mark.slow
async def test_a_page_that_takes_too_much_is_cut_off(web: PagesWeb) -> None:
    pages = PageReader(
        PageFetcher(resolve=web.resolve, connect=web.connect), read_html=HtmlReader(PageLimits(cpu_seconds=1))
    )
    web.pages["site.example/a/b"] = page("<div>" * 200_000 + "x")
    with pytest.raises(PageRefused, match="takes too much"):
        await pages.read(HERE)


async def test_a_page_is_asked_for_once_in_ten_minutes(web: PagesWeb, fetcher: PageFetcher) -> None:
    now = [0.0]
    pages = PageReader(fetcher, clock=lambda: now[0], most_kept=10)
    web.pages["site.example/a/b"] = page("12345678", "text/plain")
    for _ in range(3):
        await pages.read(HERE)
    assert len(web.requests) == 1
    now[0] = 600.0
    await pages.read(HERE)
    assert len(web.requests) == 2
    web.pages["site.example/c"] = page("12345678", "text/plain")  # there is room for one of them
    await pages.read(PageAddress.read("http://site.example/c"))
    await pages.read(HERE)
    assert len(web.requests) == 4


async def test_only_so_many_pages_are_kept_however_short_they_are(web: PagesWeb, fetcher: PageFetcher) -> None:
    pages = PageReader(fetcher, most_pages=2)
    addresses = [PageAddress.read(f"http://site.example/{n}") for n in range(3)]
    for address in addresses:
        web.pages[f"{address.host}{address.url.path}"] = page("", "text/plain")
        await pages.read(address)
    assert [pages.find(each) is not None for each in addresses] == [False, True, True]


def test_somebody_may_have_some_pages_a_minute_and_others_too() -> None:
    now = [0.0]
    rates = PageRates(2, clock=lambda: now[0])
    assert [rates.count("ann") for _ in range(3)] == [True, True, False]
    assert rates.count("bob")
    now[0] = 60.0
    assert rates.count("ann")
