"""Found messages that say the same: the newest of them is enough."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Final

from botservice.history.finding.neighbours import is_question
from botservice.history.finding.questions import SearchHit
from botservice.history.ranking import tokenize
from botservice.messages import Message

# Without them a sentence says the same. Every other word may be what it is about: "no meat", "from Rome".
_WEAK: Final = frozenset({"a", "an", "the", "and", "so", "ok", "okay", "please", "just", "also", "again", "oh", "well"})


def each_once(hits: Sequence[SearchHit]) -> list[SearchHit]:
    """Return hits without those that say the same as another: the newest stays, in the best one's place."""
    kept: dict[Hashable, SearchHit] = {}
    for hit in hits:
        said = _what_is_said(hit.message)
        known = kept.get(said)
        if known is None:
            kept[said] = hit
        elif hit.message.created_at > known.message.created_at:
            kept[said] = replace(known, message=hit.message, position=hit.position)
    return list(kept.values())


def _what_is_said(message: Message) -> Hashable:
    """Return what is equal for messages of one author that differ in order, case, signs or weak words at most."""
    said = message.full_text
    words = frozenset(tokenize(said)) - _WEAK
    return (
        message.role,
        message.author,
        is_question(said),
        words or said.strip(),
        bool(message.attachments),
    )
