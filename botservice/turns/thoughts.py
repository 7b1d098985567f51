"""What a person sees of what a model thinks."""

import re

_TITLE = re.compile(r"\s*(?:\*\*(?P<title>.+?)\*\*|#*\s*(?P<line>.+))")
_LONGEST = 80


def thinking_about(summary: str) -> str:
    """Return a summary of thoughts as an activity, by its title or its first line; nothing where it says nothing."""
    found = _TITLE.match(summary)
    title = " ".join((found["title"] or found["line"]).split()) if found is not None else ""
    if not title:
        return ""
    shown = title if len(title) <= _LONGEST else f"{title[:_LONGEST]}…"
    return f"thinking about {shown[0].lower()}{shown[1:].rstrip('.')}"
