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
    future: Future[tuple[Any, BaseException | None]] = Future()
    future.set_running_or_notify_cancel()  # whoever waits can give up, and the function runs on
    context = contextvars.copy_context()

    def run() -> None:
        try:
            future.set_result((context.run(function), None))
        except BaseException as raised:  # noqa: BLE001 - it is raised where the result is awaited
            future.set_result((None, raised))  # as a value: of some errors, a future makes a cancellation

    threading.Thread(target=run, name=name, daemon=True).start()
    value, error = await asyncio.wrap_future(future)
    # No coroutine can raise the one, and the other would end the process: a function has no say in that.
    if isinstance(error, StopIteration | KeyboardInterrupt):
        raise RuntimeError(f"the function raised {type(error).__name__}") from error  # noqa: TRY004 - it is no type
    if error is not None:
        raise error
    return value
