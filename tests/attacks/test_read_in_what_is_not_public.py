"""Read in: whoever gets a model to fetch an address gets nothing of this machine, its network or its cloud."""

import ipaddress
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standins.web_pages import PUBLIC, PagesWeb, page, redirect

from botservice.agent import page_download
from botservice.agent.page_addresses import PageAddress, is_public
from botservice.agent.page_download import PageFetcher
from botservice.core.errors import PageRefused

NOT_PUBLIC = [
    "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.1.2.3",
    "169.254.0.1", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192",
    "192.0.2.1", "192.88.99.1", "192.168.0.1", "192.168.255.255", "198.18.0.1", "198.19.255.255", "198.51.100.1",
    "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1",
    "64:ff9b::808:808", "64:ff9b:1::7f00:1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:10::1", "2001:20::1",
    "2001:db8::1", "2002:7f00:1::", "2002:a00:1::1", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1",
    "fd00:ec2::254", "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff05::2",
    "2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a00:1", "2606:4700::1%1",
]  # fmt: skip

SPELLINGS = [
    "http://127.0.0.1/", "http://127.1/", "http://127.0.1/", "http://2130706433/", "http://0x7f000001/",
    "http://0x7f.0.0.1/", "http://0x7f.1/", "http://0177.0.0.1/", "http://017700000001/", "http://127.0.0.1.../",
    "http://0/", "http://00000000/", "http://127.00.00.01/", "http://127.0.0.1./", "http://[::1]/", "http://[::]/",
    "http://[0:0:0:0:0:0:0:1]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::ffff:169.254.169.254]/",
    "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[2606:4700::1%251]/", "http://[64:ff9b::a9fe:a9fe]/",
    "http://[v1.fe80::]/", "http://localhost/", "http://localhost./", "http://LOCALHOST/", "http://foo.localhost/",
    "http://localhost.localdomain/", "http://intranet/", "http://printer.local/", "http://vault.internal/",
    "http://metadata.google.internal/computeMetadata/v1/", "http://metadata/", "http://kubernetes.default.svc/",
    "http://router.home.arpa/", "http://nas.lan/", "http://x.onion/", "http://example.com./", "http://.example.com/",
    "http://example..com/", "http://-/", "http://a.1/", "http://1.2.3.4.5/", "http://example.0x7f/",
    "http://\uff11\uff12\uff17.0.0.1/", "http://\u2460\u2461\u2466.0.0.1/", "http://127\u30020\u30020\u30021/",
    "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3/", "http://loc\u00adalhost/", "http://127.0.0.1%00.example.com/",
    "http://127.0.0.1%2f.example.com/", "http://%31%32%37.0.0.1/", "http://user@example.com/", "http://user:pw@example.com/",
    "http://example.com@127.0.0.1/", "http://127.0.0.1#@example.com/", "http://127.0.0.1\\@example.com/",
    "http://example.com\\@127.0.0.1/", "http:\\\\127.0.0.1/", "http://127.0.0.1:80@example.com/",
    "http://example.com:22/", "http://example.com:8080/", "http://example.com:443/", "https://example.com:80/",
    "http://example.com:0/", "http://example.com:99999/", "http://example.com:-1/", "https://127.0.0.1/",
    "ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1/", "dict://127.0.0.1/", "ws://example.com/",
    "unix:///var/run/docker.sock", "http+unix://example.com/", "jar:http://example.com!/", "data:text/html,x",
    "javascript:alert(1)", "//127.0.0.1/", "http:/127.0.0.1/", "http:127.0.0.1", "http:///127.0.0.1/", "http://",
    "https://", "", " ", "example.com", "http://exa mple.com/", "http://example.com/\r\nHost: 127.0.0.1",
    "http://example.com/\x00", "http://" + "a" * 64 + ".example.com/",
    "http://" + "a." * 130 + "example.com/", "http://example.com/" + "a" * 3000, "http://[::1", "http://[]/", "http://]/",
]  # fmt: skip

# Names that anybody may have point at anything, alone or among addresses that are public.
LOOKED_UP = [
    *([address] for address in NOT_PUBLIC),
    [PUBLIC, "127.0.0.1"],
    ["127.0.0.1", PUBLIC],
    [PUBLIC, "::1"],
    [PUBLIC, PUBLIC, PUBLIC, PUBLIC, "10.0.0.1"],
    ["no number"],
]

# What a page answers to lead on to somewhere else.
REDIRECTS = [
    *(spelling for spelling in SPELLINGS if spelling.strip() and "\n" not in spelling and "\x00" not in spelling),
    "//127.0.0.1/latest/meta-data/",
    "http://rebound.example/",
    "//[::1]/",
    "\\\\127.0.0.1\\",
]
STAYS = {"example.com", "http:///127.0.0.1/", "http:/127.0.0.1/", "http:127.0.0.1", "http://", "https://"}


@pytest.fixture
async def web() -> AsyncIterator[PagesWeb]:
    async with PagesWeb().running() as running:
        running.names["rebound.example"] = ["169.254.169.254"]
        yield running


@pytest.fixture
def fetcher(web: PagesWeb) -> PageFetcher:
    return PageFetcher(resolve=web.resolve, connect=web.connect)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_no_number_of_this_machine_or_its_network_is_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["1.1.1.1", "8.8.8.8", PUBLIC, "100.63.255.255", "2606:4700::1111", "2a00::1"])
def test_numbers_of_the_public_internet_are(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses())
def test_what_the_standard_library_takes_for_private_is_not_public(address) -> None:
    is_special = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    assert not (is_special and is_public(str(address)))
    inside = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None)
    assert inside is None or not is_public(str(address))


@given(st.ip_addresses(v=4))
def test_no_address_of_version_6_smuggles_one_of_version_4(address) -> None:
    number = int(address)
    for prefix in (0xFFFF << 32, 0, 0x64FF9B << 96, 0x2002 << 112, 0x20010000 << 96, 0xFFFF << 48):
        assert not is_public(str(ipaddress.IPv6Address(prefix | number)))
    assert not is_public(str(ipaddress.IPv6Address((0x2002 << 112) | (number << 80))))


@pytest.mark.parametrize("spelling", SPELLINGS)
async def test_no_odd_spelling_gets_anywhere(spelling: str, web: PagesWeb, fetcher: PageFetcher) -> None:
    with pytest.raises(PageRefused) as refused:
        await fetcher.fetch(PageAddress.read(spelling))
    assert web.connected == []
    assert "127" not in str(refused.value)


@pytest.mark.parametrize("addresses", LOOKED_UP, ids="+".join)
async def test_no_name_that_leads_elsewhere_is_connected_to(addresses, web: PagesWeb, fetcher: PageFetcher) -> None:
    web.names["evil.example"] = addresses
    for scheme in ("http", "https"):
        with pytest.raises(PageRefused):
            await fetcher.fetch(PageAddress.read(f"{scheme}://evil.example/"))
    assert web.connected == []


@pytest.mark.parametrize("target", REDIRECTS)
async def test_no_redirect_leads_elsewhere(target: str, web: PagesWeb, fetcher: PageFetcher) -> None:
    web.pages["evil.example/"] = redirect(target.encode().decode("latin-1"))
    with pytest.raises(PageRefused):
        await fetcher.fetch(PageAddress.read("http://evil.example/"))
    assert set(web.connected) == {PUBLIC}
    assert len(web.connected) == 1 or target in STAYS


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
async def test_the_last_of_several_redirects_is_looked_at_too(status: str, web: PagesWeb, fetcher: PageFetcher) -> None:
    web.pages |= {f"evil.example/{n}": redirect(f"/{n + 1}", status) for n in range(3)}
    web.pages["evil.example/3"] = redirect("http://rebound.example/", status)
    with pytest.raises(PageRefused, match="public"):
        await fetcher.fetch(PageAddress.read("http://evil.example/0"))
    assert web.connected == [PUBLIC] * 4


async def test_what_was_looked_up_is_what_is_connected_to(web: PagesWeb) -> None:
    answers = iter([[PUBLIC], ["127.0.0.1"]])

    async def resolve(host: str, port: int) -> list[str]:
        return next(answers)

    web.pages["evil.example/"] = page("hello", "text/plain")
    fetcher = PageFetcher(resolve=resolve, connect=web.connect)
    assert (await fetcher.fetch(PageAddress.read("http://evil.example/"))).data == b"hello"
    assert web.connected == [PUBLIC]
    with pytest.raises(PageRefused):  # the next request looks again, and sees what it is now
        await fetcher.fetch(PageAddress.read("http://evil.example/"))
    assert web.connected == [PUBLIC]


async def test_no_proxy_of_the_environment_is_asked(web: PagesWeb, fetcher: PageFetcher, monkeypatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    web.pages["good.example/"] = page("hello", "text/plain")
    assert (await fetcher.fetch(PageAddress.read("http://good.example/"))).data == b"hello"


@pytest.mark.parametrize("own", ["127.0.0.1", "127.0.0.2"])  # the first of its interface, and another one
async def test_a_public_address_of_this_machine_itself_is_not_read(
    own: str, web: PagesWeb, fetcher: PageFetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_download, "is_public", lambda _: True)  # as if the loopback interface had public addresses
    web.names["own.example"] = [PUBLIC, own]
    with pytest.raises(PageRefused, match="public"):
        await fetcher.fetch(PageAddress.read("http://own.example/"))
    assert web.connected == []
