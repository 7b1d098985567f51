"""Make docs/images/browser-*.png: the chat in the browser, with a list, a tool at work, on a phone and in the dark.

`.venv/bin/python -P scripts/chat_pictures.py` serves a bot whose model is a script, talks to it in Chromium, and takes
the pictures. It needs Chromium.
"""

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from crash.served import ServedBot  # noqa: E402 - the tests' own parts

IMAGES: Final = ROOT / "docs" / "images"
DESK: Final[dict[str, Any]] = {"viewport": {"width": 1200, "height": 800}, "locale": "en-GB"}
PHONE: Final[dict[str, Any]] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 1.5,
    "has_touch": True,
    "is_mobile": True,
    "locale": "en-GB",
}
HEAT: Final = "How does heat spread along a rod? Please show me the code, too."
SAID: Final = ("Plan a weekend in Lisbon with little walking", "رسالة بالعربية عن الطقس اليوم", HEAT)
BOT: Final = r'''
import asyncio

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, ToolCall, progress, tool

HEAT = """## The heat equation

Heat flows from warm places to cold ones, and the faster, the steeper the slope. In one dimension, the temperature
$u(x, t)$ obeys

$$
\\frac{\\partial u}{\\partial t} = \\alpha \\frac{\\partial^2 u}{\\partial x^2}
$$

where $\\alpha$ is the **diffusivity** of the material. A few steps in Python:

```python
import numpy as np

def spread(u: np.ndarray, alpha: float, dx: float, dt: float) -> np.ndarray:
    # The temperatures a moment later.
    assert dt <= dx**2 / (2 * alpha), "the step is too long to be stable"
    slope = np.diff(u, 2) / dx**2
    return np.pad(u[1:-1] + dt * alpha * slope, 1, mode="edge")  # the ends are kept
```

| material | diffusivity (mm²/s) | conductivity (W/(m·K)) | it feels |
|---|--:|--:|---|
| copper | 117 | 401 | cold at once |
| iron | 23 | 80 | cold |
| pine | 0.08 | 0.12 | warm |

- [x] pick a grid
- [ ] compare with the [exact solution](https://example.com)
"""


@tool
async def find_trains(to: str, day: str) -> list[str]:
    """Find trains."""
    return ["08:14, arrives 11:02, 28 euros", "09:39, arrives 12:20, 34 euros"]


@tool(needs_approval=True)
async def book_train(departs: str, people: int) -> str:
    """Book seats."""
    return "booked"


@tool
async def search_the_web(query: str, pages: int) -> str:
    """Search."""
    progress("reading page 3 of 10")
    await asyncio.Event().wait()


def answer(prompt):
    said = next(each["content"] for each in reversed(prompt) if each["role"] == "user")
    last = prompt[-1]
    if "search" in said:
        return ToolCall("", "search_the_web", {"query": "how does heat spread", "pages": 10})
    if "heat" in said:
        return HEAT
    if "book" in said.lower() and last["role"] == "user":
        return ToolCall("", "book_train", {"departs": "08:14", "people": 5})
    if last["role"] == "tool" and "booked" in last["content"]:
        return "Booked: five seats in the **08:14** to Porto, together at a table. Shall I remind you?"
    if "Porto" in said and last["role"] == "user":
        return ToolCall("", "find_trains", {"to": "Porto", "day": "4 May"})
    if last["role"] == "tool":
        return "Take the **08:14**: it arrives at 11:02, and for the five of you it is 140 euros."
    return f"Let us begin with: **{said}**"


service = AgentService(
    FunctionsBasedAgent(tools=[find_trains, book_train, search_the_web], llm=ScriptedChatLLM(answer)), name="Ada"
)
'''


def say(page: Page, text: str, answers: int | None = 1) -> None:
    """Say something and wait until so many answers are there; None waits for nothing."""
    page.get_by_role("textbox", name="Message").fill(text)
    page.get_by_role("button", name="Send").click()
    if answers is not None:
        expect(page.locator("#log .assistant:not(.notice)")).to_have_count(answers)


def begin(page: Page) -> None:
    """Begin a new chat."""
    page.get_by_role("button", name="New chat").click()
    expect(page.get_by_role("heading", name="Hello.")).to_be_visible()


def take(page: Page, name: str) -> None:
    """Take a picture of what the window shows."""
    page.wait_for_timeout(400)  # until nothing moves
    page.screenshot(path=IMAGES / f"browser-{name}.png")


def take_all(browser: Browser, url: str) -> None:
    """Talk as a person does, and take the pictures on the way."""
    desk = browser.new_context(**DESK)
    page = desk.new_page()
    page.goto(url)
    for number, text in enumerate(SAID):
        if number:
            begin(page)
        say(page, text)
    page.set_viewport_size({"width": 1200, "height": 1130})
    page.locator("#scroll").evaluate("each => each.scrollTo(0, 0)")
    take(page, "answer")
    page.set_viewport_size(DESK["viewport"])
    begin(page)
    say(page, "We are five, and go to Porto on 4 May. Which train?")
    say(page, "Good. Book it", None)
    page.get_by_role("button", name="Allow").click()
    expect(page.locator("#log .assistant:not(.notice)")).to_have_count(2)
    page.mouse.move(640, 60)
    take(page, "conversations")

    look = {"storage_state": desk.storage_state(), "color_scheme": "dark", "reduced_motion": "reduce"}
    phone = browser.new_context(**PHONE, **look)
    small = phone.new_page()
    small.goto(url)
    small.get_by_role("button", name="Conversations").click()
    small.get_by_role("link", name="How does heat").click()
    expect(small.locator("#log .assistant")).to_have_count(1)
    small.locator("#scroll").evaluate("each => each.scrollTo(0, 0)")
    take(small, "phone")
    small.emulate_media(color_scheme="light")
    small.get_by_role("button", name="Conversations").click()
    expect(small.locator("#mine a")).to_have_count(4)
    take(small, "drawer")

    begin(page)
    page.set_viewport_size({"width": 1200, "height": 520})
    say(page, "Please search for how heat spreads", None)
    expect(page.locator("#draft .call .said")).to_have_text("reading page 3 of 10")
    page.locator("#draft .call summary").click()
    take(page, "tool")


def main() -> None:
    """Make the pictures."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "bot.py").write_text(BOT)
        settings = {"DATABASE_URL": f"sqlite:///{folder}/bot.db"}
        with ServedBot(Path(folder), "--app", "bot:service", **settings) as bot:
            bot.start()
            browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
            take_all(browser, bot.url)
            browser.close()
    for each in sorted(IMAGES.glob("browser-*.png")):
        print(f"{each}: {each.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
