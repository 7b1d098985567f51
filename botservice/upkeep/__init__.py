"""Compaction and backups of the database."""

from botservice.upkeep.compaction import Upkeep
from botservice.upkeep.retention import Compacted, Retention

__all__ = ["Compacted", "Retention", "Upkeep"]
