"""The tables. The migrations make them; a test holds both against each other.

All are there as soon as one is: forgetting, merging and looking for files go through all that `metadata` knows.
"""

from botservice.storage.tables import (
    access,
    alerts,
    conversations,
    knowledge,
    models,
    observing,
    people,
    sign_ins,
    slack,
    telegram,
    waiting,
)

__all__ = [
    "access",
    "alerts",
    "conversations",
    "knowledge",
    "models",
    "observing",
    "people",
    "sign_ins",
    "slack",
    "telegram",
    "waiting",
]
