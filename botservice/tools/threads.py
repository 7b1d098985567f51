"""Running a function that blocks."""

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import Any


async def run_in_thread(function: Callable[[], Any], *, name: str) -> Any:
    """Return what function returns, run in a thread of its own.

    A function cannot be stopped. One that never ends keeps this one thread: no pool runs dry of it, and no process
    waits for it at its end.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if outcome.done():  # nobody waits any more
            return
        if error is None:
            outcome.set_result(value)
        else:
            outcome.set_exception(error)

    def run() -> None:
        value: Any = None
        error: BaseException | None = None
        try:
            value = context.run(function)
        except StopIteration as stop:  # a future takes any error but this one
            error = RuntimeError("the function raised StopIteration")
            error.__cause__ = stop
        except BaseException as raised:  # noqa: BLE001 - it is raised where the result is awaited
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await outcome
