"""The built-in tools, by the names under which TOOLS has them."""

from collections.abc import Mapping, Sequence

from botservice.setting_choices import FetchAsks
from botservice.tools.builtin import current_time
from botservice.tools.hosted import WEB_SEARCH
from botservice.tools.recalling import recall
from botservice.tools.remembering import forget_fact, remember
from botservice.tools.reminding import REMINDER_TOOLS
from botservice.tools.tool import Tool

BUILTIN: Mapping[str, Sequence[Tool]] = {
    "time": [current_time],
    "facts": [remember, forget_fact],
    "reminders": REMINDER_TOOLS,
    "recall": [recall],
    "web_search": [WEB_SEARCH],
}
"""Tools by name, besides fetch_page; settings.py has the same names."""


def built_in(names: Sequence[str], *, fetch_asks: FetchAsks = FetchAsks.MADE_UP) -> list[Tool]:
    """Return the tools of these names."""
    found: list[Tool] = []
    for name in names:
        if name == "fetch_page":
            from botservice.tools.fetching import FetchPage  # its libraries are for those who want it

            found.append(FetchPage(asks=fetch_asks).tool())
        else:
            found += BUILTIN[name]
    return found
