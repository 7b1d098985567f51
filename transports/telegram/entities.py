"""Entities as Telegram wants them: links that are links, nothing that overlaps, nothing that covers only blanks."""

import bisect
import heapq
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

from botservice.core.messages import Moment

_CODE = frozenset({"code", "pre"})
_QUOTES = frozenset({"blockquote", "expandable_blockquote"})
_HOST = re.compile(r"(?:[^\s<>\"'\\^`{|}.]+\.)+[^\W\d][^\s<>\"'\\^`{|}.]+")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!//|\d)")
_APP_SCHEMES = ("tg", "ton", "tonsite")
DATE_TIME = "date_time"  # a time as each reader's own. Source: core.telegram.org/bots/api#date-time-entity-formatting


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of text that is formatted. Places count in code points until the text is sent.

    Attributes:
        argument: A link's address, or the language of a block of code.
    """

    kind: str
    begin: int
    end: int
    argument: str | None = None


@dataclass(frozen=True, slots=True)
class Rich:
    """A text and its formatting."""

    text: str
    entities: tuple[Entity, ...] = ()


def checked_link(url: str) -> str | None:
    """Return an address that Telegram links, made whole, or None if it would refuse it.

    Source: td/telegram/LinkManager.cpp, check_link.
    """
    url = url.strip()
    if _OTHER_SCHEME.match(url):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme in _APP_SCHEMES:
        return url
    if parts.scheme not in ("http", "https") or any(each.isspace() for each in url):
        return None
    return parts.geturl() if _HOST.fullmatch(host) or _ADDRESS.fullmatch(host) else None


def normalised(rich: Rich) -> Rich:
    """Return rich with entities that stand inside each other properly, as the Bot API keeps them.

    Code takes no formatting but a quotation around it, neither quotations nor links stand within their like, and of two
    that cross, the second is cut in two. Source: core.telegram.org/bots/api#messageentity.
    """
    trimmed = [each for entity in rich.entities if (each := _trimmed(rich.text, entity)) is not None]
    links = _Apart(each for each in trimmed if each.kind == "text_link")
    code = _Apart(each for each in trimmed if each.kind in _CODE and not links.touching(each))
    quotes = _Apart(each for each in trimmed if each.kind in _QUOTES)
    styles = [each for each in trimmed if each.kind not in _CODE | _QUOTES and each.kind != "text_link"]
    outside = [part for each in styles for part in code.leave_out(each)]
    inner = [part for each in (*code.entities, *links.entities, *outside) for part in quotes.cut(each)]
    return Rich(rich.text, tuple(_uncrossed(rich.text, [*quotes.entities, *inner])))


def _trimmed(text: str, entity: Entity) -> Entity | None:
    begin, end = max(0, entity.begin), min(len(text), entity.end)
    while entity.kind != "pre" and begin < end and text[begin].isspace():
        begin += 1
    while end > begin and text[end - 1].isspace():
        end -= 1
    if end <= begin:
        return None
    is_same = begin == entity.begin and end == entity.end
    return entity if is_same else replace(entity, begin=begin, end=end)


class _Apart:
    """Entities of which none touches an earlier, larger one, in the order of the text."""

    def __init__(self, entities: Iterable[Entity]) -> None:
        self.entities: list[Entity] = []
        for each in sorted(entities, key=_in_order):
            if not self.entities or each.begin >= self.entities[-1].end:
                self.entities.append(each)
        self._ends = [each.end for each in self.entities]

    def touching(self, entity: Entity) -> list[Entity]:
        found = []
        for each in self.entities[bisect.bisect_right(self._ends, entity.begin) :]:
            if each.begin >= entity.end:
                break
            found.append(each)
        return found

    def leave_out(self, entity: Entity) -> list[Entity]:
        """Return the parts of an entity that none of these touches."""
        touching = self.touching(entity)
        if not touching:
            return [entity]
        parts, begin = [], entity.begin
        for each in touching:
            parts.append(replace(entity, begin=begin, end=each.begin))
            begin = each.end
        parts.append(replace(entity, begin=begin))
        return [part for part in parts if part.end > part.begin]

    def cut(self, entity: Entity) -> list[Entity]:
        """Return an entity in parts of which each is wholly inside of one of these or outside of them all."""
        borders = {border for each in self.touching(entity) for border in (each.begin, each.end)}
        if not borders:
            return [entity]
        places = [entity.begin, *sorted(each for each in borders if entity.begin < each < entity.end), entity.end]
        return [replace(entity, begin=begin, end=end) for begin, end in itertools.pairwise(places)]


def _uncrossed(text: str, entities: Iterable[Entity]) -> list[Entity]:
    counter = itertools.count()
    waiting = [(*_in_order(each), next(counter), each) for each in entities]
    heapq.heapify(waiting)
    done: list[Entity] = []
    open_ones: list[Entity] = []
    while waiting:
        entity = _trimmed(text, heapq.heappop(waiting)[-1])
        if entity is None:
            continue
        open_ones = [each for each in open_ones if each.end > entity.begin]
        crossed = next((each for each in open_ones if each.end < entity.end), None)
        if crossed is not None:
            for part in (replace(entity, end=crossed.end), replace(entity, begin=crossed.end)):
                heapq.heappush(waiting, (*_in_order(part), next(counter), part))
        elif not any(each.kind == entity.kind for each in open_ones):
            done.append(entity)
            open_ones.append(entity)
    return done


def _in_order(entity: Entity) -> tuple[int, int, bool]:
    return entity.begin, -entity.end, entity.kind not in _QUOTES


def with_moments(rich: Rich, moments: Sequence[Moment]) -> Rich:
    """Return rich with the times in it marked, as far as nothing else is marked there already."""
    found = []
    for moment in moments:
        begin = rich.text.find(moment.words) if moment.words else -1
        while begin >= 0:
            end = begin + len(moment.words)
            if all(_allows(each, begin, end) for each in rich.entities):
                found.append(Entity(DATE_TIME, begin, end, str(int(moment.at.timestamp()))))
            begin = rich.text.find(moment.words, end)
    return Rich(rich.text, (*rich.entities, *found)) if found else rich


def _allows(entity: Entity, begin: int, end: int) -> bool:
    """Return whether a time may stand beside, or inside of, an entity."""
    if entity.end <= begin or end <= entity.begin:
        return True
    return entity.kind not in ("code", "pre", "text_link", DATE_TIME) and entity.begin <= begin and end <= entity.end
