"""Compaction and backups of the database."""

from botservice.upkeep.retention import Compacted, Retention
from botservice.upkeep.upkeep import Upkeep

__all__ = ["Compacted", "Retention", "Upkeep"]
