"""Running a function that blocks."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


async def run_in_thread(function: Callable[[], Any], *, name: str) -> Any:
    """Return what function returns, run in a thread of its own.

    A function cannot be stopped. One that never ends keeps this one thread: no pool runs dry of it, and no process
    waits for it at its end.
    """
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()  # whoever waits can give up, and the function runs on
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(function))
        except StopIteration as stop:  # a future takes any error but this one
            error = RuntimeError("the function raised StopIteration")
            error.__cause__ = stop
            future.set_exception(error)
        except BaseException as raised:  # noqa: BLE001 - it is raised where the result is awaited
            future.set_exception(raised)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(future)
