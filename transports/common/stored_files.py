"""The files that deliveries hold: named by the digest of their bytes, which are stored with the conversation."""

from collections.abc import Mapping
from typing import Any

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.core.errors import DeliveryError, DeliveryRefused
from botservice.core.messages import Attachment
from botservice.storage.blobs import digest_of, read_blobs
from botservice.storage.database import Connection, Storage


def name_file(attachment: Attachment) -> dict[str, Any]:
    """Return a file as deliveries name it: by its address, or by the digest of its bytes."""
    where = {"url": attachment.url} if attachment.data is None else {"sha256": digest_of(attachment.data)}
    return {"name": attachment.name, "mime_type": attachment.mime_type, **where}


def ending_of(mime_type: str) -> str:
    """Return how the name of a file without a name ends."""
    return f".{mime_type.partition('/')[2].partition(';')[0].partition('+')[0] or 'bin'}"


def find_file(connection: Connection, keys: ContextKeys, digest: str) -> bytes | None:
    """Return the bytes of a file of a conversation, or None if they are not kept."""
    context_id = find_context(connection, keys)
    return None if context_id is None else read_blobs(connection, context_id, [digest]).get(digest)


async def read_stored_file(storage: Storage | None, context_keys: Mapping[str, str], file: Mapping[str, Any]) -> bytes:
    """Return the bytes of a file that a delivery of a conversation holds.

    Raises:
        DeliveryRefused: they are not kept any more.
    """
    if "text" in file:  # what is too long for messages stands in the delivery itself
        return str(file["text"]).encode()
    if storage is None:
        raise DeliveryError("the transport has not started yet")
    keys, digest = ContextKeys.of(context_keys), str(file["sha256"])
    data = await storage.read(lambda connection: find_file(connection, keys, digest))
    if data is None:
        raise DeliveryRefused("the file is not kept any more")
    return data
