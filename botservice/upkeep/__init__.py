"""Keeping the database as small as what is needed, and copies of it."""

from botservice.upkeep.retention import Compacted, Retention
from botservice.upkeep.upkeep import Upkeep

__all__ = ["Compacted", "Retention", "Upkeep"]
