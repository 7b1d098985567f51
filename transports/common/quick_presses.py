"""What a person presses may be there before it is stored which message it stands under: that is waited for."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from botservice.storage.database import Connection, Storage

PAUSES_SECONDS: Final = (0.02, 0.05, 0.1, 0.2, 0.5)

Found = TypeVar("Found")


async def read_when_known(
    storage: Storage,
    query: Callable[[Connection], Found],
    is_known: Callable[[Found], bool] = lambda found: found is not None,
    pauses_seconds: Sequence[float] = PAUSES_SECONDS,
) -> Found:
    """Return what a query finds as soon as that is known, or in the end what it finds then."""
    for pause_seconds in pauses_seconds:
        found = await storage.read(query)
        if is_known(found):
            return found
        await asyncio.sleep(pause_seconds)
    return await storage.read(query)
