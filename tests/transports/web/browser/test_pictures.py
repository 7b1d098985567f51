"""Pictures and other files of messages, in a real Chromium: they have their place before they come."""

import asyncio
import base64
from typing import Any

import pytest
from looks import AT_REST, DESKTOP, PHONE, WATCH_SHIFTS

from botservice.core.picture_size import read_picture_size
from transports.web.outbound import SHOWN_IMAGES

expect = pytest.importorskip("playwright.async_api").expect
pytestmark = pytest.mark.asyncio(loop_scope="session")
DRAW = """([type, width, height]) => {
    const canvas = Object.assign(document.createElement("canvas"), {width, height});
    canvas.getContext("2d").fillRect(0, 0, width, height / 2);
    return canvas.toDataURL(type);
}"""
SHOWN_SIZE = """async data => {
    const picture = new Image();
    picture.src = URL.createObjectURL(new Blob([Uint8Array.from(atob(data), each => each.charCodeAt(0))]));
    await picture.decode();
    return [picture.naturalWidth, picture.naturalHeight];
}"""
# The directory of a TIFF with one entry: tag 0x0112, of which the eight values say how the camera was held.
ORIENTATION = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0%c\0\0\0\0\0\0\0"


async def draw(page: Any, mime_type: str, width: int, height: int) -> bytes:
    """Have the browser write a picture in one of the formats that it knows to write."""
    address = await page.evaluate(DRAW, [mime_type, width, height])
    head, _, data = address.partition(",")
    assert head == f"data:{mime_type};base64"
    return base64.b64decode(data)


async def test_the_size_of_a_picture_is_read_as_the_browser_shows_it(run_site, open_page):
    async with run_site() as site:
        page = await open_page(site.url)
        found = {}
        for mime_type in ("image/png", "image/jpeg", "image/webp"):
            picture = await draw(page, mime_type, 320, 200)
            found[mime_type] = read_picture_size(mime_type, picture), (320, 200)
            if mime_type == "image/jpeg":
                for turned in range(1, 9):
                    exif = ORIENTATION % turned
                    segment = b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif
                    data = picture[:2] + segment + picture[2:]
                    size = await page.evaluate(SHOWN_SIZE, base64.b64encode(data).decode())
                    found[f"turned {turned}"] = read_picture_size(mime_type, data), tuple(size)
                assert found["turned 6"][1] == (200, 320)
            for length in range(0, len(picture), 7):
                read_picture_size(mime_type, picture[:length])  # whatever is missing
        assert [(what, sizes) for what, sizes in found.items() if sizes[0] != sizes[1]] == []


@pytest.mark.parametrize("options", [PHONE, DESKTOP], ids=["phone", "desktop"])
async def test_nothing_moves_when_pictures_come_and_a_file_is_a_line(run_site, open_page, options):
    async with run_site() as site:
        page = await open_page(site.url, **options)
        sizes = {"image/png": (640, 480), "image/jpeg": (300, 900), "image/webp": (1600, 200)}
        files = [
            {"name": f"{size[0]}", "mimeType": kind, "buffer": await draw(page, kind, *size)}
            for kind, size in sizes.items()
        ]
        assert {each["mimeType"] for each in files} < SHOWN_IMAGES
        files.append({"name": "report.txt", "mimeType": "text/plain", "buffer": b"words"})
        await page.locator("#files").set_input_files(files)
        await page.say("look at these")
        await expect(page.answers).to_have_count(1)
        are_let_go = asyncio.Event()

        async def hold(route):
            await are_let_go.wait()
            await route.continue_()

        await page.add_init_script(WATCH_SHIFTS)
        await page.route("**/web/files/**", hold)
        await page.reload(wait_until="domcontentloaded")
        await expect(page.answers).to_have_count(1)
        height = "document.getElementById('scroll').scrollHeight"
        before = await page.evaluate(height)
        are_let_go.set()
        assert await page.evaluate(AT_REST) < 0.01
        assert await page.evaluate(height) == before
        for picture in await page.locator(".files img").all():
            width, height, shown_width, shown_height = await picture.evaluate(
                "each => [each.naturalWidth, each.naturalHeight, each.offsetWidth, each.offsetHeight]"
            )
            assert shown_width / shown_height == pytest.approx(width / height, rel=0.05)
            assert max(shown_width, shown_height) <= 290
        line = await page.get_by_role("link", name="report.txt").bounding_box()
        assert line["height"] < 60
