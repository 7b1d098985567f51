"""The tables. The migrations make them; a test holds both against each other.

All are there as soon as one is: forgetting, merging and looking for files go through all that `metadata` knows.
"""

from botservice.storage.tables import conversations, knowledge, people, services, triggers, waiting

__all__ = ["conversations", "knowledge", "people", "services", "triggers", "waiting"]
