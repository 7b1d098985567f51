"""Times in a text as each reader's own. Source: core.telegram.org/bots/api#date-time-entity-formatting."""

from collections.abc import Sequence

from botservice.messages import Moment
from transports.telegram.outgoing.entities import Entity, Rich

KIND = "date_time"
FORMAT = "dt"  # the date and the time of day, both short


def with_moments(rich: Rich, moments: Sequence[Moment]) -> Rich:
    """Return rich with the times in it marked, as far as nothing else is marked there already."""
    found = []
    for moment in moments:
        begin = rich.text.find(moment.words) if moment.words else -1
        while begin >= 0:
            end = begin + len(moment.words)
            if all(_allows(each, begin, end) for each in rich.entities):
                found.append(Entity(KIND, begin, end, str(int(moment.at.timestamp()))))
            begin = rich.text.find(moment.words, end)
    return Rich(rich.text, (*rich.entities, *found)) if found else rich


def _allows(entity: Entity, begin: int, end: int) -> bool:
    """Return whether a time may stand beside, or inside of, an entity."""
    if entity.end <= begin or end <= entity.begin:
        return True
    return entity.kind not in ("code", "pre", "text_link", KIND) and entity.begin <= begin and end <= entity.end
