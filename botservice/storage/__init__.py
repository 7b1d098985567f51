"""Where everything is kept: SQLite on one machine, Postgres for many."""

from botservice.storage.claims import Claim
from botservice.storage.database import Storage
from botservice.storage.limits import StorageLimits
from botservice.storage.url import DatabaseUrl

__all__ = ["Claim", "DatabaseUrl", "Storage", "StorageLimits"]
