"""How long tests wait for a machine that has something else to do."""

from botservice.storage.limits import StorageLimits

# On a machine that is too busy to run a test for seconds, Postgres would take its process for one that hangs.
PATIENT = StorageLimits(silence=60.0)
