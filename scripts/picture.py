"""Make docs/images/kill.png: a chat in Telegram, a kill -9 in the middle of an answer, and its turn in the inspector.

`.venv/bin/python -P scripts/picture.py` serves a bot with the stand-ins of the tests, kills it, and starts it again.
What the picture shows came out of that: messages are drawn as Telegram's API was told to show them. It needs Chromium.
"""

import html
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from crash.served import ServedBot  # noqa: E402 - the tests' own parts
from standins.bot_api import BotApi  # noqa: E402
from standins.openai_api import OpenAIApi, Reply, ToolUse  # noqa: E402
from standins.serving import Gate  # noqa: E402

PICTURE: Final = ROOT / "docs" / "images" / "kill.png"
CHAT: Final = 1000
BOT: Final = '''
from botservice import AgentService, FunctionsBasedAgent, default_llm, tool


@tool
async def find_trains(to: str, day: str) -> list[str]:
    """Find trains."""
    return ["08:14, arrives 11:02, 28 euros", "09:39, arrives 12:20, 34 euros"]


service = AgentService(FunctionsBasedAgent(tools=[find_trains], llm=default_llm()))
'''
ASKED: Final = "We are five, and go to Porto on 4 May. Which train?"
ANSWER: Final = (
    "Take the 08:14: it arrives at 11:02, and for the five of you it is 140 euros. "
    "The 09:39 would be 30 euros more, and you would miss lunch. Shall I remind you on 3 May?"
)


class Model:
    """Calls the tool, then answers; its first answer stops in the middle, and is what the kill meets."""

    def __init__(self) -> None:
        self.gate = Gate()
        self._answers = 0

    def __call__(self, body: dict[str, Any]) -> Reply:
        """Return what the model says next."""
        if body["messages"][-1]["role"] != "tool":
            return Reply(tool_calls=[ToolUse("find_trains", {"to": "Porto", "day": "4 May"})])
        self._answers += 1
        words = re.findall(r"\S+\s*", ANSWER)
        first = {"chunk_wait": self.gate, "wait_at": 13} if self._answers == 1 else {}
        return Reply(pieces=words, text=ANSWER, **first)


def play(folder: Path, browser: Browser) -> dict[str, Any]:
    """Serve the bot, kill it, start it again, and return what was to be seen."""
    (folder / "bot.py").write_text(BOT)
    model = Model()
    with OpenAIApi.running(model) as llm, BotApi.running() as api:
        settings = {
            "DATABASE_URL": f"sqlite:///{folder / 'bot.db'}",
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
            "OPENAI_BASE_URL": llm.base_url,
            "OPENAI_MODEL": "gpt-5.5",
        }
        with ServedBot(folder, "--app", "bot:service", **settings) as bot:
            bot.start()
            api.person_says(ASKED, chat_id=CHAT)
            api.wait_until(lambda: "five of" in _draft(api), timeout=60, what="the answer grows")
            seen: dict[str, Any] = {"draft": _draft(api), "killed": bot.pid}
            bot.kill()
            bot.start()
            api.wait_until(lambda: ANSWER in api.visible_texts(CHAT), timeout=60, what="the answer is whole")
            seen |= {"answers": api.visible_texts(CHAT), "started": bot.pid, "inspector": _inspector(browser, bot.url)}
            model.gate.open()
    return seen


def _draft(api: BotApi) -> str:
    drafts = api.calls("sendMessageDraft", chat_id=CHAT)
    return f"{drafts[-1].params.get('text', '')} " if drafts else ""


def _inspector(browser: Browser, url: str) -> bytes:
    """Return what the inspector shows of the turn."""
    page = browser.new_page(viewport={"width": 760, "height": 900}, device_scale_factor=1.5)
    page.goto(f"{url}/inspect/t/1")
    return page.screenshot()


def compose(seen: dict[str, Any], browser: Browser) -> None:
    """Draw the picture."""
    from base64 import b64encode

    inspector = f"data:image/png;base64,{b64encode(seen['inspector']).decode()}"
    asked = _bubble(ASKED, "you")
    terminal = "\n".join(
        [
            f"<b>$</b> kill -9 {seen['killed']}",
            "<b>$</b> botservice serve",
            "botservice is running. Ctrl+C stops it.",
            "<i># the same turn goes on: the train was looked up once</i>",
        ]
    )
    page = browser.new_page(viewport={"width": 1440, "height": 540})
    page.set_content(
        _PAGE.format(
            before=asked + _bubble(seen["draft"].strip() + " ▍", "bot draft"),
            after=asked + "".join(_bubble(text, "bot") for text in seen["answers"] if text == ANSWER),
            terminal=terminal,
            inspector=inspector,
        )
    )
    page.wait_for_load_state()
    page.screenshot(path=PICTURE)


def _bubble(text: str, kind: str) -> str:
    return f'<p class="{kind}">{html.escape(text)}</p>'


_PAGE = """<!doctype html><meta charset="utf-8"><style>
body {{ margin: 0; width: 1440px; height: 540px; background: #eef1f4;
  font: 15px/1.4 system-ui, sans-serif; color: #1b2530 }}
main {{ display: grid; grid-template-columns: 350px 350px 1fr; grid-template-rows: auto 1fr 130px;
  gap: 14px 20px; padding: 22px; box-sizing: border-box; height: 100% }}
h2 {{ font-size: 15px; margin: 0; font-weight: 600 }}
h2 span {{ color: #6a7682; font-weight: 400 }}
section {{ background: #cfe0ec; border-radius: 12px; padding: 14px; overflow: hidden }}
p {{ margin: 0 0 10px; padding: 8px 12px; border-radius: 12px; max-width: 84% }}
.you {{ background: #e3fed8; margin-left: auto; width: fit-content }}
.bot {{ background: #fff; width: fit-content }}
.draft {{ opacity: .8 }}
pre {{ grid-column: 1 / 3; background: #17212b; color: #dbe6ef; border-radius: 12px; margin: 0;
  padding: 16px 18px; font: 14px/1.6 monospace }}
b {{ color: #7fd18b; font-weight: 400 }}
i {{ color: #8ea1b3; font-style: normal }}
figure {{ grid-column: 3; grid-row: 2 / 4; margin: 0; border-radius: 12px; overflow: hidden;
  background: #fff; border: 1px solid #d5dce2 }}
img {{ width: 100%; display: block }}
</style><main>
<h2>Telegram <span>· an answer is being written</span></h2><h2>Telegram <span>· after the kill</span></h2>
<h2>The inspector <span>· how that answer came about</span></h2>
<section>{before}</section><section>{after}</section><figure><img src="{inspector}"></figure>
<pre>{terminal}</pre></main>"""


def main() -> None:
    """Make the picture."""
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        compose(play(Path(folder), browser), browser)
        browser.close()
    print(f"{PICTURE}: {PICTURE.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
