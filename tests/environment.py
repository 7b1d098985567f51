"""What the tests run in: the same environment on every machine, for the tests and for the processes that they begin."""

import os
import time
from collections.abc import Mapping, MutableMapping
from typing import Final

# What says where programs and libraries are, and how a run of tests is meant to be.
_KEPT: Final = {
    *("PATH", "TMPDIR", "CI", "VIRTUAL_ENV", "CHROMIUM", "REQUIRE_BROWSER", "APPROVAL_TURNS", "BOTSERVICE_TEST_KILLS"),
    *("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX"),
}
_KEPT_PREFIXES: Final = ("PYTEST_", "COV_", "COVERAGE_", "CHAOS_")
_SET: Final[Mapping[str, str]] = {
    "TERM": "xterm-256color",
    "COLUMNS": "80",
    "LINES": "24",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",
    "PYTHONUTF8": "1",
    "PTB_TIMEDELTA": "true",  # set where the client is imported, which may have been before this
}
_UMASK: Final = 0o022


def set_environment(home: str, environment: MutableMapping[str, str] = os.environ) -> None:
    """Replace the environment, time zone and umask of this process by those of the suite.

    Args:
        home: An empty folder.
    """
    kept = {name: value for name, value in environment.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}
    environment.clear()
    environment.update(kept | _SET | {"HOME": home})
    time.tzset()
    os.umask(_UMASK)
