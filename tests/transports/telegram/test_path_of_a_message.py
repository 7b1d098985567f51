"""The path of a message in docs/architecture.md is the one that a message takes."""

import asyncio
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from standins.bot_api import BotApi

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "architecture.md").read_text()
# What they do on the page is not the first that they do for a message.
ENTERED_EARLIER = {
    *("botservice/history/chat_history.py", "botservice/conversation/prompt_log.py", "botservice/llm/asking.py"),
    *("botservice/turns/turn_saver.py", "transports/telegram/client.py"),
}
# These run in a thread of the readers, which is not profiled.
READ_IN_A_THREAD = {"botservice/turns/next_work.py", "botservice/turns/finding_queries.py"}


@contextmanager
def entered_modules() -> Iterator[list[str]]:
    """Yield the modules whose functions are called within the block, in the order of the calls; not by the sweep."""
    modules: list[str] = []
    loop = asyncio.get_running_loop()

    def note(frame, event, _):
        code = frame.f_code
        is_begun = event == "call" and frame.f_lineno == code.co_firstlineno  # not a coroutine that goes on
        if is_begun and code.co_name != "__init__" and code.co_filename.startswith(f"{ROOT}/"):
            task = asyncio.current_task(loop)
            if task is not None and task.get_name() == "botservice-sweep":
                return
            modules.append(str(Path(code.co_filename).relative_to(ROOT)))

    sys.setprofile(note)
    try:
        yield modules
    finally:
        sys.setprofile(None)


def path_on_the_page() -> list[str]:
    """Return the modules of the table, as paths from the root."""
    rows = re.findall(r"^\| \w+ \| (`.*?) \|", PAGE.partition("## The path of a message")[2], re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`([\w./]+\.py)`", row)]
    homes = ("", "botservice/", "botservice/turns/")
    return [next(home + name for home in homes if (ROOT / home / name).is_file()) for name in named]


async def test_a_message_passes_the_modules_of_the_page_in_their_order(api: BotApi, bot_on) -> None:
    async with bot_on(api) as bot:
        api.person_says("warm up", chat_id=42)
        await api.message(42, "You said: warm up")
        await bot.worker.stop(grace_seconds=60)  # so that the next message finds nothing under way
        await bot.worker.start()
        with entered_modules() as entered:
            api.person_says("hello", chat_id=42)
            await api.message(42, "You said: hello")
    entered = entered[entered.index("transports/telegram/updates.py") :]
    named = [name for name in path_on_the_page() if name not in READ_IN_A_THREAD]
    assert len(named) > 20
    at_first = [entered.index(name) for name in dict.fromkeys(named) if name not in ENTERED_EARLIER]
    assert at_first == sorted(at_first), "a module is entered before one that stands in front of it"
    left = iter(entered)
    assert [name for name in named if name not in left] == [], "the first of them is not entered after the one before"
