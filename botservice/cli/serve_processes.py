"""What `serve` starts: workers, itself again when a file of the bot changes, and a browser with the chat."""

import asyncio
import contextlib
import logging
import os
import shlex
import sys
import threading
import time
import webbrowser
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from botservice.config.settings import Settings
from botservice.core.errors import BotServiceError
from botservice.turns.turn import Share

if TYPE_CHECKING:
    from watchfiles import Change

logger = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 30.0
_STEADY_SECONDS = 60.0  # a worker that lived that long is restarted after the first pause again
_ENDING_SECONDS = 9.5  # of the ten that a PaaS gives between SIGTERM and SIGKILL
_LEFT_SECONDS = 12.0  # a worker that can end by itself after its parent has done so by then


async def keep_workers(processes: int, app: str | None, ending: asyncio.Event) -> None:
    """Keep as many workers running next to this process as there are to be processes in all; then have them end.

    Args:
        app: The `--app` that they are to serve.
        ending: Set once this process is to end: they end meanwhile.
    """
    keeping = [asyncio.create_task(_keep(index, processes, app)) for index in range(1, processes)]
    try:
        await ending.wait()
    finally:
        for task in keeping:
            task.cancel()
        await asyncio.gather(*keeping, return_exceptions=True)


def read_share(text: str | None) -> Share:
    """Return what a worker was told to work on first, such as "1/4"; everything where it was told nothing."""
    if text is None:
        return Share()
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        raise BotServiceError(f"--share must be INDEX/COUNT, such as 1/4, not {text!r}")
    return Share(int(index), int(count))


def end_with_parent(end: Callable[[], None]) -> None:
    """Have end called in this event loop once the process that started this one is gone: it holds our stdin open.

    A loop that hangs calls nothing any more: then this process is cut off, or it would keep its conversations for ever.
    """
    loop = asyncio.get_running_loop()

    def watch() -> None:
        while os.read(sys.stdin.fileno(), 1024):
            pass
        with contextlib.suppress(RuntimeError):  # the loop has ended by itself
            loop.call_soon_threadsafe(end)
        time.sleep(_LEFT_SECONDS)
        os._exit(1)

    threading.Thread(target=watch, name="botservice-parent", daemon=True).start()


async def _keep(index: int, processes: int, app: str | None) -> None:
    """Run one worker, and again whenever it ends, until cancelled."""
    clock, pause = asyncio.get_running_loop().time, _FIRST_PAUSE_SECONDS
    while True:
        began_at = clock()
        ended = await _run(index, processes, app)
        if clock() - began_at > _STEADY_SECONDS:
            pause = _FIRST_PAUSE_SECONDS
        logger.error("serve.worker_ended", extra={"worker": index, **ended, "wait_seconds": pause})
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)


async def _run(index: int, processes: int, app: str | None) -> dict[str, object]:
    """Run one worker until it ends, or this is cancelled; return how it ended."""
    chosen = [] if app is None else ["--app", app]
    try:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "botservice", "worker", *chosen, "--share", f"{index}/{processes}"),
            stdin=PIPE,
            stdout=DEVNULL,
            start_new_session=True,  # Ctrl+C reaches it through this process alone
        )
    except OSError as error:  # no memory, or no process, left for it at the moment
        return {"reason": error.strerror}
    try:
        return {"code": await process.wait()}
    except asyncio.CancelledError:
        await _end(process)
        raise


async def _end(process: Process) -> None:
    """End a worker: its answers have the same grace as those of this process."""
    with contextlib.suppress(ProcessLookupError):
        process.terminate()
    try:
        async with asyncio.timeout(_ENDING_SECONDS):
            await process.wait()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()


_WATCHED: Final = (".env", "mcp.json", "hooks.json", "SKILL.md")
_RELOADING_SECONDS: Final = 10  # for the answers that are under way: see GRACE_SECONDS
_RELOAD: Final = "--reload"


def serve_again() -> None:
    """Run the same command without --reload, and again each time a file of the bot changes; until Ctrl+C."""
    from watchfiles import run_process

    command = [sys.executable, "-m", "botservice", *(each for each in sys.argv[1:] if each != _RELOAD)]
    run_process(
        Path.cwd(),
        target=shlex.join(command),
        target_type="command",
        watch_filter=_is_of_the_bot,
        sigint_timeout=_RELOADING_SECONDS,
    )


def _is_of_the_bot(_: "Change", path: str) -> bool:
    file = Path(path)
    is_installed = any(part in {".venv", "venv", "site-packages", "__pycache__", "node_modules"} for part in file.parts)
    return not is_installed and (file.suffix == ".py" or file.name in _WATCHED)


_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}  # noqa: S104 - asked, not bound
_CHANGES = "WATCHFILES_CHANGES"  # what `--reload` began again for; an empty list at its first start


def open_page(settings: Settings) -> None:
    """Open the chat's page in a browser, next to everything else; only for a terminal, and only once."""
    if not sys.stdout.isatty() or os.environ.get(_CHANGES, "[]") != "[]":
        return
    host = settings.host if ":" not in settings.host else f"[{settings.host.strip('[]')}]"
    address = f"http://{_EVERYWHERE.get(settings.host, host)}:{settings.port}/"
    threading.Thread(target=_open, args=(address,), daemon=True).start()


def _open(address: str) -> None:
    """Open a page, unless there is nothing but a browser that would take the terminal for itself."""
    try:
        browser = webbrowser.get()
    except webbrowser.Error:
        return
    if type(browser) is webbrowser.GenericBrowser and "BROWSER" not in os.environ:
        return
    browser.open(address)
