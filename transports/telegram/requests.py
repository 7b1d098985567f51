"""HTTP requests to Telegram that are not cut off: whoever waits for one may go, the request itself comes to its end."""

import asyncio
from typing import Any

from telegram.request import HTTPXRequest


class WholeRequests(HTTPXRequest):
    """The library's requests, each in a task of its own.

    A request that is cancelled at an unlucky moment takes its connection out of httpcore's pool for good; with
    httpcore 1.0.9 that is one in a hundred. After some thousands of answers whose drafts were cut short, none is left.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._under_way: set[asyncio.Task[tuple[int, bytes]]] = set()

    async def do_request(self, *args: Any, **kwargs: Any) -> tuple[int, bytes]:
        """Return the answer to a request; it is sent whole also where the caller is cancelled."""
        task = asyncio.ensure_future(super().do_request(*args, **kwargs))
        self._under_way.add(task)
        task.add_done_callback(self._forget)
        return await asyncio.shield(task)

    async def shutdown(self) -> None:
        """Cut off what is under way, and close every connection."""
        tasks = list(self._under_way)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await super().shutdown()

    def _forget(self, task: asyncio.Task[tuple[int, bytes]]) -> None:
        self._under_way.discard(task)
        if not task.cancelled():
            task.exception()  # seen: whoever waited may have gone
