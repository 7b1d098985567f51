"""Work that goes on while a block runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Coroutine
from typing import Any


@contextlib.asynccontextmanager
async def background_task(work: Coroutine[Any, Any, object], *, name: str) -> AsyncIterator[None]:
    """Do work while the block runs; when it is left, the work is cut off and has ended."""
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
