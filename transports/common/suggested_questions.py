"""Questions that people may press instead of typing: what the agent can do, and what its tools are good for."""

from collections.abc import Collection
from typing import Final

from botservice.texts import in_language

MAX_STARTERS: Final = 4
# Those of the service have questions of their own; the others are asked about by their names.
_QUESTIONS: Final = {"remind_me": "suggest.reminders", "recall": "suggest.recall", "remember": "suggest.facts"}
_OWN_TOOLS: Final = frozenset({"cancel_reminder", "current_time", "forget_fact", "list_reminders", "order_tea"})
_DEMO_TOOL: Final = "order_tea"
_DEMO: Final = ("starters.abilities", "starters.remember", "starters.time", "starters.order")


def questions_about_tools(names: Collection[str], language: str | None) -> list[str]:
    """Return a question for each of the agent's tools that people would ask for."""
    known = [in_language(_QUESTIONS[name], language) for name in names if name in _QUESTIONS]
    others = [name for name in names if name not in _QUESTIONS and name not in _OWN_TOOLS]
    spoken = [name.replace("__", ": ").replace("_", " ") for name in others]
    return [*(in_language("suggest.tool", language, tool=name) for name in spoken), *known]


def find_starters(tools: Collection[str], language: str | None) -> list[str]:
    """Return what an empty page offers to say, at most four texts; where the demo answers, what shows it best."""
    if _DEMO_TOOL in tools:
        return [in_language(key, language) for key in _DEMO]
    return [in_language("starters.abilities", language), *questions_about_tools(tools, language)][:MAX_STARTERS]
