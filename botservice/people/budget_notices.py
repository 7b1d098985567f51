"""What people are told about budgets."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from botservice.core.formatted_text import FormattedText
from botservice.core.policies import Scope
from botservice.texts import in_language
from botservice.texts.formatted import say

_WHOSE: Final[Mapping[str, str]] = {
    Scope.PERSON: "budgets.person",
    Scope.CHAT: "budgets.chat",
    Scope.SERVICE: "budgets.service",
}


def used_up_text(scope: str, ends_at: datetime, language: str | None) -> FormattedText:
    """Return the text for a question that would take more than is left."""
    return _said("budgets.used_up", scope, f"{ends_at:%Y-%m-%d %H:%M}", language)


def too_fast_text(ends_at: datetime, language: str | None) -> FormattedText:
    """Return the text for messages beyond the rate limit."""
    return say("budgets.too_fast", language, when=f"{ends_at:%H:%M}")


def nearly_used_text(scope: str, ends_at: datetime, language: str | None) -> FormattedText:
    """Return the line below an answer when most of a budget is used."""
    return _said("budgets.nearly", scope, f"{ends_at:%Y-%m-%d %H:%M}", language)


def _said(key: str, scope: str, when: str, language: str | None) -> FormattedText:
    return say(key, language, whose=in_language(_WHOSE[scope], language), when=when)
