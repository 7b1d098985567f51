"""Encrypting stored files again: those in the clear, and those under an older key."""

from functools import partial

from botservice.core.progress import Progress, unwatched
from botservice.storage.blobs import delete_unreadable, encrypt_stored, find_newest_blob
from botservice.storage.database import Storage

_AT_ONCE = 50  # files, each of them in memory


async def give_up_unreadable(storage: Storage, progress: Progress = unwatched) -> int:
    """Delete every stored file that no key decrypts, and return how many there were."""
    lost, last = 0, 0
    newest = await storage.read(find_newest_blob)
    while True:
        ids, count = await storage.write(partial(delete_unreadable, after=last, limit=_AT_ONCE))
        if not ids:
            return lost
        lost, last = lost + count, ids[-1]
        progress(last, newest)


async def encrypt_files(storage: Storage, progress: Progress = unwatched) -> int:
    """Encrypt every stored file with the first key, and return how many there are; the clear bytes leave the database.

    It may run alongside the service, and again after it was cut off.
    """
    done, last = 0, 0
    newest = await storage.read(find_newest_blob)
    while ids := await storage.write(partial(encrypt_stored, after=last, limit=_AT_ONCE)):
        done, last = done + len(ids), ids[-1]
        progress(last, newest)
    await storage.scrub()
    return done
