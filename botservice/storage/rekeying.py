"""Encrypting stored files anew: those in the clear, and those under an older key."""

from functools import partial

from botservice.progressing import Progress, unwatched
from botservice.storage.blobs import encrypt_stored, find_newest_blob
from botservice.storage.database import Storage

_AT_ONCE = 50  # files, each of them in memory


async def encrypt_files(storage: Storage, progress: Progress = unwatched) -> int:
    """Encrypt every stored file with the first key, and return how many there are; the clear bytes leave the database.

    It may run beside the service, and again after it was cut off.
    """
    done, last = 0, 0
    newest = await storage.read(find_newest_blob)
    while ids := await storage.write(partial(encrypt_stored, after=last, limit=_AT_ONCE)):
        done, last = done + len(ids), ids[-1]
        progress(last, newest)
    await storage.scrub()
    return done
