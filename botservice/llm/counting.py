"""Counting tokens beside the event loop, in threads that nothing else has: counts never wait behind slow work."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

_THREADS: Final = ThreadPoolExecutor(2, thread_name_prefix="botservice-counting")

T = TypeVar("T")


async def count_aside(function: Callable[..., T], *arguments: object) -> T:
    """Return what a function that counts returns for these arguments."""
    return await asyncio.get_running_loop().run_in_executor(_THREADS, function, *arguments)
