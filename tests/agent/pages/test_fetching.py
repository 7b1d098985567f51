"""Asking for a page: what comes is bounded in time, size and kind, whatever its server does."""

import asyncio
import errno
import gc
import gzip
import socket
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from standins.certificates import certificate_for
from standins.web_pages import PUBLIC, PagesWeb, page, redirect

from botservice.agent.page_addresses import PageAddress, addresses_in
from botservice.agent.page_download import FetchLimits, PageFetcher, decode, look_up
from botservice.core.errors import PageRefused

HERE = PageAddress.read("http://site.example/")


async def test_a_page_comes_with_its_kind_and_its_last_address(web: PagesWeb, fetcher: PageFetcher) -> None:
    web.pages["site.example/"] = redirect("//www.site.example/start?x=1#part")
    web.pages["www.site.example/start?x=1"] = page("<p>Hi", "Text/HTML; Charset=ISO-8859-1")
    found = await fetcher.fetch(HERE)
    assert (str(found.address), found.kind, found.charset) == (
        "http://www.site.example/start?x=1",
        "html",
        "iso-8859-1",
    )
    assert found.data == b"<p>Hi"
    assert "cookie" not in web.requests[1].lower()
    assert "Accept-Encoding: gzip\r\n" in web.requests[1]


@pytest.mark.parametrize("location", ["/ü/Ü", "/%C3%BC/%C3%9C"])
async def test_a_redirect_in_utf_8_leads_where_it_says(web: PagesWeb, fetcher: PageFetcher, location: str) -> None:
    web.pages["site.example/"] = redirect(location)
    web.pages["site.example/%C3%BC/%C3%9C"] = page("here", "text/plain")
    assert (await fetcher.fetch(HERE)).data == b"here"


@pytest.mark.parametrize(
    "kind",
    ["text/html; charset*=a%00b''x", "text/html; charset*=a; charset*0=b", f"text/html; {'a=b; ' * 60}charset=latin-1"],
)
async def test_a_kind_that_nobody_can_read_in_short_names_no_encoding(
    web: PagesWeb, fetcher: PageFetcher, kind
) -> None:
    web.pages["site.example/"] = page("Hi", kind)
    found = await fetcher.fetch(HERE)
    assert (found.kind, found.charset) == ("html", None)


async def test_names_are_looked_up_while_the_loop_s_own_threads_are_busy() -> None:
    loop, is_over = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(ThreadPoolExecutor(1))
    busy = loop.run_in_executor(None, is_over.wait)
    try:
        async with asyncio.timeout(30):
            assert await look_up(PUBLIC, 80) == [PUBLIC]
    finally:
        is_over.set()
        await busy


async def test_a_page_that_leads_on_for_ever_is_left(web: PagesWeb, fetcher: PageFetcher) -> None:
    web.pages["site.example/"] = redirect("/")
    with pytest.raises(PageRefused, match="more than 5 times"):
        await fetcher.fetch(HERE)
    assert len(web.requests) == 6


async def test_more_than_may_be_read_is_cut(web: PagesWeb, fetcher: PageFetcher) -> None:
    web.pages["site.example/"] = page("a" * 100_001, "text/plain")
    found = await fetcher.fetch(HERE)
    assert (len(found.data), found.is_cut) == (100_000, True)
    web.pages["site.example/"] = page("a" * 100_001, "application/pdf")
    with pytest.raises(PageRefused, match="too large"):
        await fetcher.fetch(HERE)


async def test_a_page_that_unpacks_to_gigabytes_is_cut(web: PagesWeb, fetcher: PageFetcher) -> None:
    bomb = gzip.compress(bytes(50_000_000))
    web.pages["site.example/"] = page(bomb, "text/plain", Content_Encoding="gzip")
    found = await fetcher.fetch(HERE)
    assert (len(found.data), found.is_cut) == (100_000, True)
    web.pages["site.example/"] = page(gzip.compress(b"small"), "text/plain", Content_Encoding="gzip")
    assert (await fetcher.fetch(HERE)).data == b"small"


@pytest.mark.parametrize(
    ("start", "is_cut"), [(gzip.compress(b"small"), False), (gzip.compress(b"")[:10], True)], ids=["over", "endless"]
)
async def test_no_more_is_read_of_what_unpacks_to_nothing(
    web: PagesWeb, fetcher: PageFetcher, start: bytes, is_cut: bool
) -> None:
    async def answer(reader, writer) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n\r\n" + start)
        while True:  # packed pieces of no length; behind the end of what is packed they are anything
            writer.write(b"\x00\x00\x00\xff\xff" * 10_000)
            await writer.drain()

    web.pages["site.example/"] = answer
    found = await fetcher.fetch(HERE)
    assert (found.data, found.is_cut) == (b"" if is_cut else b"small", is_cut)


async def test_others_are_served_between_the_pieces_of_a_page(web: PagesWeb, fetcher: PageFetcher) -> None:
    turns = 0

    async def serve_others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    pieces = b"1\r\nx\r\n" * 2_000 + b"0\r\n\r\n"
    web.pages["site.example/"] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + pieces
    others = asyncio.create_task(serve_others())
    assert len((await fetcher.fetch(HERE)).data) == 2_000
    others.cancel()
    assert turns > 2_000


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (page(b"x", "text/plain", Content_Encoding="br"), "packed"),
        (page(b"x", "text/plain", Content_Encoding="gzip, gzip"), "packed"),
        (page(b"no gzip", "text/plain", Content_Encoding="gzip"), "damaged"),
        (page(b"x", "image/png"), "neither a page nor a text"),
        (page(b"x", "application/octet-stream"), "neither a page nor a text"),
        (page(b"x", "text/html", status="404 Not Found"), "answered 404"),
        (page(b"x", "text/html", status="304 Not Modified"), "answered 304"),
        (b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(300)) + b"\r\n", "too much before"),
        (b"HTTP/1.1 200 OK\r\nX: " + b"y" * 300_000 + b"\r\n\r\n", "broke off"),
        (b"SSH-2.0-OpenSSH\r\n", "broke off"),
        (b"", "broke off"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc", "broke off"),
    ],
)
async def test_what_is_no_page_is_refused_with_a_reason(web: PagesWeb, fetcher: PageFetcher, answer, why) -> None:
    web.pages["site.example/"] = answer
    with pytest.raises(PageRefused, match=why):
        await fetcher.fetch(HERE)


@pytest.mark.parametrize("drip", [b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n"])
async def test_a_server_that_drips_is_left_in_time(web: PagesWeb, drip: bytes) -> None:
    is_left = asyncio.Event()

    async def answer(reader, writer) -> None:
        try:
            while True:
                writer.write(drip)
                drip_on = b"a: b\r\n" if b"\r\n\r\n" not in drip else b"x"
                writer.write(drip_on)
                await writer.drain()
                if await reader.read(1) == b"":
                    return
        finally:
            is_left.set()

    web.pages["site.example/"] = answer
    fetcher = PageFetcher(FetchLimits(seconds=0.3), resolve=web.resolve, connect=web.connect)
    with pytest.raises(PageRefused, match="in time"):
        await fetcher.fetch(HERE)
    async with asyncio.timeout(30):
        await is_left.wait()


async def test_a_connection_is_closed_where_it_is_cancelled_before_tls_is_spoken() -> None:
    is_open, is_closed = asyncio.Event(), asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)  # the client's first words
        is_open.set()
        await reader.read()
        writer.close()
        is_closed.set()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as server:
        web = PagesWeb()
        web.port = server.sockets[0].getsockname()[1]
        fetcher = PageFetcher(resolve=web.resolve, connect=web.connect)
        fetching = asyncio.create_task(fetcher.fetch(PageAddress.read("https://site.example/")))
        await is_open.wait()
        fetching.cancel()
        gc.disable()
        try:
            async with asyncio.timeout(30):
                await is_closed.wait()
        finally:
            gc.enable()


async def test_https_is_checked_by_the_name_and_not_by_the_number(tmp_path) -> None:
    server, client = certificate_for("site.example", tmp_path)
    async with PagesWeb().running(server) as web:
        web.pages |= {"site.example/": page("safe", "text/plain"), "other.example/": page("not safe", "text/plain")}
        fetcher = PageFetcher(resolve=web.resolve, connect=web.connect, tls=client)
        assert (await fetcher.fetch(PageAddress.read("https://site.example/"))).data == b"safe"
        assert "Host: site.example\r\n" in web.requests[0]
        with pytest.raises(PageRefused, match="certificate"):
            await fetcher.fetch(PageAddress.read("https://other.example/"))
        assert web.connected == [PUBLIC, PUBLIC]
        assert len(web.requests) == 1


async def test_https_of_a_number_is_checked_by_that_number(tmp_path) -> None:
    server, client = certificate_for("site.example", tmp_path)
    async with PagesWeb().running(server) as web:
        web.names[PUBLIC] = [PUBLIC]
        fetcher = PageFetcher(resolve=web.resolve, connect=web.connect, tls=client)
        with pytest.raises(PageRefused, match="certificate"):
            await fetcher.fetch(PageAddress.read(f"https://{PUBLIC}/"))
        assert web.requests == []


async def test_the_next_address_of_a_name_is_asked_where_one_takes_no_connection(
    web: PagesWeb, fetcher: PageFetcher
) -> None:
    web.names["site.example"] = ["2606:4700::1111", PUBLIC]
    web.pages["site.example/"] = page("here", "text/plain")
    web.down.add("2606:4700::1111")
    assert (await fetcher.fetch(HERE)).data == b"here"
    assert web.connected == ["2606:4700::1111", PUBLIC]
    web.down.add(PUBLIC)
    with pytest.raises(PageRefused, match="its server is not there"):
        await fetcher.fetch(HERE)


async def test_a_name_with_many_addresses_of_version_6_is_asked_at_version_4_too(
    web: PagesWeb, fetcher: PageFetcher
) -> None:
    unreachable = ["2606:4700::1111", "2606:4700::1112", "2606:4700::1113"]
    web.names["site.example"] = [*unreachable, PUBLIC]
    web.pages["site.example/"] = page("here", "text/plain")
    web.down.update(unreachable)
    assert (await fetcher.fetch(HERE)).data == b"here"
    assert web.connected == [unreachable[0], PUBLIC]


async def test_a_machine_without_version_6_asks_at_the_addresses_of_version_4(
    web: PagesWeb, fetcher: PageFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Socket(socket.socket):
        def __init__(self, family: int = -1, *args: int, **options: int) -> None:
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, "Address family not supported by protocol")
            super().__init__(family, *args, **options)

    monkeypatch.setattr(socket, "socket", Socket)
    web.names["site.example"] = ["2606:4700::1111", PUBLIC]
    web.pages["site.example/"] = page("here", "text/plain")
    web.down.add("2606:4700::1111")
    assert (await fetcher.fetch(HERE)).data == b"here"


async def test_an_address_of_version_6_is_named_as_it_is_written(web: PagesWeb, fetcher: PageFetcher) -> None:
    web.names["2606:4700::1111"] = ["2606:4700::1111"]
    web.pages["[2606:4700::1111]/a?b=%20c"] = page("here", "text/plain")
    assert (await fetcher.fetch(PageAddress.read("http://[2606:4700::1111]/a?b=%20c"))).data == b"here"


@pytest.mark.parametrize(
    ("data", "charset", "text"),
    [
        ("Grüße".encode(), None, "Grüße"),
        ("Grüße".encode("latin-1"), "iso-8859-1", "Grüße"),
        ("Grüße".encode("latin-1"), None, "Grüße"),
        ("Привет".encode("koi8-r"), "KOI8-R", "Привет"),
        ("日本".encode("shift-jis"), "Shift_JIS", "日本"),
        ('<meta charset="windows-1251">Привет'.encode("cp1251"), None, '<meta charset="windows-1251">Привет'),
        ("\ufeffHi".encode("utf-16"), "utf-8", "Hi"),
        ("Grüße".encode(), "rot13", "Grüße"),
        ("Grüße".encode(), "unicode_escape", "Grüße"),
        (b"+ADw-script+AD4-", "utf-7", "+ADw-script+AD4-"),
        (b"\x93Hi\x94", None, "\u201cHi\u201d"),
        (b"\x81\xe4", None, "\x81ä"),
        (("ü" * 200).encode()[:-1], "utf-8", "ü" * 199 + "\ufffd"),
    ],
)
def test_pages_are_text_in_every_usual_encoding_and_in_no_other(data, charset, text) -> None:
    assert decode(data, charset).strip("\ufeff") == text


def test_addresses_are_found_in_texts_however_they_are_written_there() -> None:
    text = "See (https://a.example/x?y=1), <HTTP://B.example/>, [c](http://c.example:80/d#e) or www.d.example/f/."
    assert {"a.example/x?y=1", "b.example", "c.example/d", "www.d.example/f"} <= addresses_in(text)
    assert addresses_in("c.example/d.**") == {"c.example/d", "c.example/d.**"}
    for spelling in ("https://c.example/d", "http://C.EXAMPLE/d/", "https://c.example/d#other"):
        assert PageAddress.read(spelling).target == "c.example/d"
