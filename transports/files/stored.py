"""The files of a conversation, as they are stored: found by the digest of their bytes."""

from collections.abc import Mapping

from botservice.contexts.context import ContextKeys, find_context
from botservice.errors import DeliveryError
from botservice.storage import Storage
from botservice.storage.blobs import read_blobs


def ending_of(mime_type: str) -> str:
    """Return how the name of a file without a name ends."""
    return f".{mime_type.partition('/')[2].partition(';')[0].partition('+')[0] or 'bin'}"


async def read_stored_file(storage: Storage | None, context_keys: Mapping[str, str], name: str) -> bytes | None:
    """Return the bytes of a conversation's file by their digest, or None if they are not kept any more."""
    if storage is None:
        raise DeliveryError("the transport has not started yet")
    keys = ContextKeys.of(context_keys)
    context_id = await storage.read(lambda connection: find_context(connection, keys))
    if context_id is None:
        return None
    found = await storage.read(lambda connection: read_blobs(connection, context_id, [name]))
    return found.get(name)
