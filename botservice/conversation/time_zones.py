"""Time zones by their IANA names: looked up, and what is said of a name that is none."""

import difflib
import logging
from datetime import UTC, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

logger = logging.getLogger(__name__)

_LONGEST_ZONE: Final = 80  # characters of a name that are looked at, and repeated


def find_zone(name: str) -> ZoneInfo | None:
    """Return the time zone of an IANA name, or None if there is none."""
    try:
        return ZoneInfo(name.strip())
    except (ZoneInfoNotFoundError, ValueError, OSError):  # "America" is a folder
        return None


def find_nearest_zone(name: str, *, likeness: float = 0.6) -> str | None:
    """Return the name of the time zone that a mistyped name is most like; None if it is like none.

    Args:
        likeness: 0 to 1, as `difflib` has it.
    """
    # Etc/GMT+2 is two hours behind UTC, which nobody means who writes UTC+2; and PST is like MST.
    known = {each.lower(): each for each in available_timezones() if "/" in each and not each.startswith("Etc/")}
    found = difflib.get_close_matches(name.strip().lower()[:_LONGEST_ZONE], known, n=1, cutoff=likeness)
    return known[found[0]] if found else None


def refuse_zone(name: str) -> str:
    """Return what is wrong with the name of a time zone, as a model is told, with the nearest one that there is."""
    nearest = find_nearest_zone(name)
    remedy = f"did you mean {nearest}?" if nearest is not None else "give an IANA name, such as Europe/Madrid."
    return f"there is no time zone {name[:_LONGEST_ZONE]!r}: {remedy}"


def stored_zone(name: str) -> tzinfo:
    """Look up the time zone of something stored; where this machine does not know it, log that and return UTC."""
    zone = find_zone(name)
    if zone is None:
        logger.warning("reminder.time_zone_unknown", extra={"time_zone": name})
    return zone or UTC


def known_zone(name: str | None) -> ZoneInfo | None:
    """Look up the zone in which a person is shown times; None for UTC, which stands for an unknown one."""
    return None if name is None or name == "UTC" else find_zone(name)
