"""What Hypothesis draws is the same in every run, and no machine is too slow for it.

`--hypothesis-profile=default` draws anew, and more than twice as much, to look for what nobody has thought of.
"""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "steady",
    max_examples=40,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("steady")
