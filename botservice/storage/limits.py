"""How long storage waits for others, and others for it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StorageLimits:
    """Times in seconds.

    Attributes:
        lock: How long a write waits for another connection that holds what it needs.
        read: How long Postgres works on one question of a reader before it gives up.
        silence: How long Postgres bears a writer that says nothing before it ends its session, and its claims with it.
        heartbeat: How often a writer that has nothing to do says something; well below silence.
        rest: How long a process that has nothing to do leaves Postgres alone; None for never.
        awake: How long after its last use Postgres is not left alone yet: longer than a call of a model takes.
        blocked_migration: How long to try to change tables on Postgres that others read for long, such as a backup.
        migration: How long to wait for another process that has the worker's lock while the tables are not up to date.
    """

    lock: float = 5.0
    read: float = 120.0
    silence: float = 4.0
    heartbeat: float = 1.0
    rest: float | None = None
    awake: float = 180.0
    migration: float = 10.0
    blocked_migration: float = 60.0
