"""The tools that every agent may have."""

from datetime import datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from botservice.contexts.context import AgentContext
from botservice.tools.tool import tool


@tool(idempotent=True)
async def current_time(context: AgentContext, timezone: str = "UTC") -> str:
    """Tell the date and the time of day.

    Args:
        timezone: An IANA name, such as Europe/Madrid or Asia/Seoul.
    """
    now = context.storage.now()
    try:
        zone = ZoneInfo(timezone)
    except (ZoneInfoNotFoundError, ValueError, OSError):  # "America" is a folder
        return f"There is no time zone {timezone!r}. In UTC it is {_spell(now)}."
    return _spell(now.astimezone(zone))


def _spell(moment: datetime) -> str:
    return moment.strftime("%A, %Y-%m-%d %H:%M %Z")
