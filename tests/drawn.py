"""What Hypothesis draws is the same in every run, and no machine is too slow for it.

`--hypothesis-profile=default` draws again, and more than twice as much, to look for what nobody has thought of.
"""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

settings.register_profile(
    "steady",
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")


def pytest_configure(config: pytest.Config) -> None:
    """Draw nothing from the source of modules, unless again: which are loaded differs, and reading them takes long."""
    if config.getoption("--hypothesis-profile") is None:
        providers._get_local_constants = lambda: providers._local_constants
