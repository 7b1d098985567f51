"""The built-in tools, by the names under which TOOLS has them."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from botservice.agent.remembering import forget_fact, recall, remember
from botservice.agent.reminding import REMINDER_TOOLS
from botservice.agent.tool import WEB_SEARCH, Tool, tool
from botservice.config.setting_choices import FetchAsks
from botservice.conversation.context import AgentContext
from botservice.conversation.time_zones import find_zone, refuse_zone


@tool(idempotent=True)
async def current_time(context: AgentContext, timezone: str = "UTC") -> str:
    """Tell the date and the time of day.

    Args:
        timezone: An IANA name, such as Europe/Madrid or Asia/Seoul.
    """
    now = context.storage.now()
    zone = find_zone(timezone)
    if zone is None:
        refusal = refuse_zone(timezone)
        return f"T{refusal[1:]} In UTC it is {_spell(now)}."
    return _spell(now.astimezone(zone))


def _spell(moment: datetime) -> str:
    return moment.strftime("%A, %Y-%m-%d %H:%M %Z")


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
            from botservice.agent.fetch_page_tool import FetchPage  # its libraries are for those who want it

            found.append(FetchPage(asks=fetch_asks).tool())
        else:
            found += BUILTIN[name]
    return found


_MOST_CUPS = 12


@tool(needs_approval=True, idempotent=True)
async def order_tea(cups: int = 1) -> str:
    """Order tea, in the demo only: nothing is ordered in truth.

    Args:
        cups: How many cups, from 1 to 12.
    """
    if not 1 <= cups <= _MOST_CUPS:
        raise ValueError(f"from 1 to {_MOST_CUPS} cups can be ordered, not {cups}")
    return f"{cups} {'cup' if cups == 1 else 'cups'} of tea: ordered, because you allowed it (in this demo only)."
