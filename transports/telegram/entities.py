"""Entities as Telegram wants them: links that are links, nothing that overlaps, nothing that covers only blanks."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from urllib.parse import urlsplit

_CODE = frozenset({"code", "pre"})
_QUOTES = frozenset({"blockquote", "expandable_blockquote"})
_HOST = re.compile(r"(?:[^\s<>\"'\\^`{|}.]+\.)+[^\W\d][^\s<>\"'\\^`{|}.]+")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_APP_SCHEMES = ("tg", "ton", "tonsite")


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
    """Return an address that Telegram links, made whole; None where it would refuse it.

    Source: td/telegram/LinkManager.cpp, check_link.
    """
    url = url.strip()
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


def without_broken_links(rich: Rich) -> Rich:
    """Return rich with every link that Telegram would refuse written out behind its label."""
    text, entities = rich.text, list(rich.entities)
    for entity in sorted(rich.entities, key=lambda each: each.end, reverse=True):
        if entity.kind != "text_link":
            continue
        url = checked_link(entity.argument or "")
        place = entities.index(entity)
        if url is not None:
            entities[place] = replace(entity, argument=url)
            continue
        del entities[place]
        label = text[entity.begin : entity.end]
        said = (entity.argument or "").strip()
        if said and not said.startswith("#") and said not in label:
            text, entities = _insert(text, entities, entity.end, f" ({said})")
    return Rich(text, tuple(entities))


def _insert(text: str, entities: Sequence[Entity], place: int, more: str) -> tuple[str, list[Entity]]:
    moved = [
        replace(
            each,
            begin=each.begin + len(more) if each.begin >= place else each.begin,
            end=each.end + len(more) if each.end > place else each.end,
        )
        for each in entities
    ]
    return text[:place] + more + text[place:], moved


def normalised(rich: Rich) -> Rich:
    """Return rich with entities that stand inside each other properly, as the Bot API keeps them.

    Code takes no formatting but a quotation around it, quotations do not stand within each other, and of two that
    cross, the second is cut in two. Source: core.telegram.org/bots/api#messageentity.
    """
    trimmed = [each for entity in rich.entities if (each := _trimmed(rich.text, entity)) is not None]
    code = [each for each in trimmed if each.kind in _CODE]
    links = [each for each in trimmed if each.kind == "text_link"]
    code = _without_nested([each for each in code if not any(_crosses(each, link) for link in links)])
    quotes = _without_nested([each for each in trimmed if each.kind in _QUOTES])
    others = [each for each in trimmed if each.kind not in _CODE | _QUOTES]
    for block in code:
        others = [piece for each in others for piece in _subtract(each, block)]
    found = _uncrossed(rich.text, [*quotes, *code, *others])
    return Rich(rich.text, tuple(found))


def _trimmed(text: str, entity: Entity) -> Entity | None:
    begin, end = max(0, entity.begin), min(len(text), entity.end)
    if entity.kind != "pre":
        while begin < end and text[begin].isspace():
            begin += 1
    elif not text[begin:end].strip():
        return None
    while end > begin and text[end - 1].isspace():
        end -= 1
    return replace(entity, begin=begin, end=end) if end > begin else None


def _without_nested(entities: Iterable[Entity]) -> list[Entity]:
    """Return entities of which none touches an earlier, larger one."""
    kept: list[Entity] = []
    for each in sorted(entities, key=lambda entity: (entity.begin, -entity.end)):
        if not kept or each.begin >= kept[-1].end:
            kept.append(each)
    return kept


def _crosses(one: Entity, other: Entity) -> bool:
    return one.begin < other.end and other.begin < one.end


def _subtract(entity: Entity, block: Entity) -> list[Entity]:
    if not _crosses(entity, block):
        return [entity]
    parts = [replace(entity, end=min(entity.end, block.begin)), replace(entity, begin=max(entity.begin, block.end))]
    return [part for part in parts if part.end > part.begin]


def _uncrossed(text: str, entities: Sequence[Entity]) -> list[Entity]:
    waiting = sorted(entities, key=lambda each: (each.begin, -each.end), reverse=True)
    done: list[Entity] = []
    while waiting:
        entity = waiting.pop()
        crossed = next((each for each in done if each.begin <= entity.begin < each.end < entity.end), None)
        if crossed is not None:
            pieces = [replace(entity, end=crossed.end), replace(entity, begin=crossed.end)]
            waiting.extend(piece for each in pieces if (piece := _trimmed(text, each)) is not None)
            waiting.sort(key=lambda each: (each.begin, -each.end), reverse=True)
        elif entity not in done and _trimmed(text, entity) is not None:
            trimmed = _trimmed(text, entity)
            if trimmed is not None and trimmed not in done:
                done.append(trimmed)
    return done
