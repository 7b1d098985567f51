"""The built-in tools, by the names under which TOOLS has them."""

from collections.abc import Mapping, Sequence

from botservice.tools.builtin import current_time
from botservice.tools.recalling import recall
from botservice.tools.remembering import forget_fact, remember
from botservice.tools.reminding import REMINDER_TOOLS
from botservice.tools.tool import Tool

BUILTIN: Mapping[str, Sequence[Tool]] = {
    "time": [current_time],
    "facts": [remember, forget_fact],
    "reminders": REMINDER_TOOLS,
    "recall": [recall],
}
"""Tools by name; settings.py has the same names."""
