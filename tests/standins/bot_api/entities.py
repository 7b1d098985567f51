"""What becomes of a text and its entities on their way into a chat: cleaned, checked, trimmed, cut."""

import re
from dataclasses import dataclass
from typing import Any

from standins.bot_api.calls import ApiError, Call, bad_request, word_set
from standins.bot_api.markup import Entity, LinkError, MarkupError, check_link, utf16_length
from standins.bot_api.parsing import parse

MAX_TEXT_UNITS = 4096
MAX_CAPTION_UNITS = 1024
MAX_ENTITIES = 100  # the server keeps so many and says nothing about the rest
STYLES = word_set("bold italic underline strikethrough spoiler")
FORMATTING = word_set("bold italic underline strikethrough spoiler blockquote expandable_blockquote code pre")
AUTOMATIC = word_set("mention hashtag cashtag bot_command url email phone_number")
WITH_ARGUMENT = word_set("text_link text_mention custom_emoji date_time")
TO_SPACE = {code: " " for code in range(32) if code not in {10, 13}}
REMOVED = re.compile("[\r\u2028-\u202e\u0333\u033f\u030a]")
BLANK = frozenset(" \n\t\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2800\u3164\ufeff")
PLAIN_FIELDS = ("url", "user", "language", "custom_emoji_id", "unix_time", "date_time_format")


@dataclass(frozen=True, slots=True)
class Strictness:
    """What to refuse although the real server silently repairs it.

    `count`: entities beyond 100. `nesting`: blank ones, and wrongly nested ones (code within bold costs the bold).
    """

    count: bool = False
    nesting: bool = False


def formatted(
    call: Call,
    known_users: set[int],
    *,
    field: str = "text",
    limit: int = MAX_TEXT_UNITS,
    strict: Strictness = Strictness(),
    may_be_empty: bool = False,
) -> tuple[str, list[Entity]]:
    """Return the text of a call as people will see it, with its entities.

    Args:
        known_users: Who can be mentioned without a username.
        strict: What is refused although the server would silently repair it.

    Raises:
        ApiError: the Bot API would refuse it.
    """
    raw, mode = call.text(field), call.text("parse_mode")
    entities_field = "entities" if field == "text" else "caption_entities"
    if not raw:
        if may_be_empty:
            return "", []
        raise bad_request("message text is empty")
    if mode and mode.lower() != "none":
        try:
            text, entities = parse(raw, mode)
        except LookupError as error:
            raise bad_request("unsupported parse_mode") from error
        except MarkupError as error:
            raise ApiError(400, f"Bad Request: can't parse entities: {error}") from error
        entities = [e for e in entities if e["type"] != "text_mention" or e["user"]["id"] in known_users]
    else:
        given = call.object(entities_field, list, "message entities") or []
        text, entities = raw, [_read_entity(item, known_users) for item in given]
    if strict.count and len(entities) > MAX_ENTITIES:
        raise bad_request(f"strict: {len(entities)} entities; only {MAX_ENTITIES} would be kept")
    if strict.nesting:
        _refuse_what_is_repaired(text, entities)
    text, entities = _clean(text, _check_places(text, entities))
    if not may_be_empty and all(character in BLANK for character in text):
        raise bad_request("text must be non-empty")
    if utf16_length(text) > limit:
        raise bad_request("message is too long" if field == "text" else "message caption is too long")
    return text, _first_hundred(entities)


def _read_entity(item: Any, known_users: set[int]) -> Entity:
    if not isinstance(item, dict):
        raise ApiError(400, "Bad Request: can't parse MessageEntity: expected an Object")
    for name in ("offset", "length"):
        if name not in item:
            raise ApiError(400, f"Bad Request: can't parse MessageEntity: Can't find field \"{name}\"")
        if not isinstance(item[name], int) or isinstance(item[name], bool):
            raise ApiError(400, f'Bad Request: can\'t parse MessageEntity: Field "{name}" must be a valid Number')
        if not 0 <= item[name] <= 1_000_000:
            raise bad_request(f"receive an entity with incorrect {name} {item[name]}")
    kind = item.get("type")
    if kind not in FORMATTING | AUTOMATIC | WITH_ARGUMENT:
        raise ApiError(400, "Bad Request: can't parse MessageEntity: Unsupported type specified")
    entity = {"type": kind, "offset": item["offset"], "length": item["length"]}
    entity |= {name: item[name] for name in PLAIN_FIELDS if item.get(name) is not None}
    return entity | _checked_argument(kind, item, known_users)


def _checked_argument(kind: str, item: dict[str, Any], known_users: set[int]) -> Entity:
    if kind == "text_link":
        url = str(item.get("url", ""))
        try:
            return {"url": check_link(url)}
        except LinkError as error:
            raise ApiError(400, f"Bad Request: entity URL '{url}' is invalid: {error}") from error
    if kind == "text_mention" and (item.get("user") or {}).get("id") not in known_users:
        raise bad_request("user not found")
    if kind == "custom_emoji" and not re.fullmatch(r"[1-9]\d{0,17}", str(item.get("custom_emoji_id", ""))):
        raise ApiError(400, 'Bad Request: can\'t parse MessageEntity: Field "custom_emoji_id" must be a valid Number')
    return {}


def _check_places(text: str, entities: list[Entity]) -> list[Entity]:
    """Return the entities in order, without the empty ones and those that the server finds by itself."""
    kept = [entity for entity in entities if entity["length"] and entity["type"] not in AUTOMATIC]
    kept.sort(key=lambda entity: (entity["offset"], -entity["length"]))
    if not kept:
        return kept
    units, middles = 0, set()
    for character in text:
        units += 1
        if character > "\uffff":
            middles.add(units)
            units += 1
    for entity in kept:
        begin, end = entity["offset"], entity["offset"] + entity["length"]
        if begin >= units:
            raise bad_request(f"entity begins after the end of the text at UTF-16 offset {begin}")
        if end > units:
            raise bad_request(
                f"entity beginning at UTF-16 offset {begin} ends after the end of the text at UTF-16 offset {end}"
            )
        if begin in middles:
            raise bad_request(f"entity begins in a middle of a UTF-16 symbol at UTF-16 offset {begin}")
        if end in middles:
            raise bad_request(
                f"entity beginning at UTF-16 offset {begin} ends in a middle of a UTF-16 symbol at UTF-16 offset {end}"
            )
    return kept


def _refuse_what_is_repaired(text: str, entities: list[Entity]) -> None:
    units = text.encode("utf-16-le", "surrogatepass")
    ordered = sorted(entities, key=lambda entity: (entity["offset"], -entity["length"]))
    open_entities: list[Entity] = []
    for entity in ordered:
        begin, end = entity["offset"], entity["offset"] + entity["length"]
        covered = units[begin * 2 : end * 2].decode("utf-16-le", "replace")
        if not covered.strip():
            raise bad_request(f"strict: {entity['type']} at {begin} covers nothing but blanks")
        open_entities = [other for other in open_entities if other["offset"] + other["length"] > begin]
        for other in open_entities:
            if end > other["offset"] + other["length"]:
                raise bad_request(f"strict: {entity['type']} at {begin} overlaps {other['type']} at {other['offset']}")
            if not _may_contain(other["type"], entity["type"]):
                raise bad_request(f"strict: {entity['type']} at {begin} stands within {other['type']}")
        open_entities.append(entity)


def _may_contain(outer: str, inner: str) -> bool:
    """Return whether Telegram keeps one entity within another. Source: Bot API, formatting options."""
    if outer.endswith("blockquote"):
        return not inner.endswith("blockquote")
    return not {outer, inner} & {"code", "pre"} and (outer in STYLES or inner in STYLES)


def _clean(text: str, entities: list[Entity]) -> tuple[str, list[Entity]]:
    """Return the text without control characters and outer blanks, and its entities moved along."""
    text = text.translate(TO_SPACE)
    for found in reversed(list(REMOVED.finditer(text))):
        text = text[: found.start()] + text[found.end() :]
        entities = _without(entities, utf16_length(text[: found.start()]))
    text = text.rstrip(" \n")
    total = utf16_length(text)
    first_begin = entities[0]["offset"] if entities else total
    leading = min(len(text) - len(text.lstrip(" \n")), first_begin)
    moved = []
    for entity in entities:
        end = min(entity["offset"] + entity["length"], total)
        begin = entity["offset"]
        if end > begin:
            moved.append(entity | {"offset": begin - leading, "length": end - begin})
    return text[leading:], moved


def _without(entities: list[Entity], place: int) -> list[Entity]:
    moved = []
    for entity in entities:
        begin, end = entity["offset"], entity["offset"] + entity["length"]
        begin, end = begin - (begin > place), end - (end > place)
        if end > begin:
            moved.append(entity | {"offset": begin, "length": end - begin})
    return moved


def _first_hundred(entities: list[Entity]) -> list[Entity]:
    kept, count = [], 0
    for entity in entities:
        if entity["type"] != "custom_emoji":
            count += 1
            if count > MAX_ENTITIES:
                continue
        kept.append(entity)
    return kept


FOUND_IN_TEXT = re.compile(
    r"(?P<url>https?://\S+[^\s.,!?;:)])"
    r"|(?P<email>[\w.+-]+@[\w-]+\.[\w.]+\w)"
    r"|(?<![\w/])(?P<mention>@[A-Za-z]\w{3,31})\b"
    r"|(?<![\w/])(?P<bot_command>/[A-Za-z0-9_]{1,32}(?:@\w{4,32})?)\b"
    r"|(?<!\w)(?P<hashtag>#\w*[^\W\d]\w*)"
)


def detect(text: str) -> list[Entity]:
    """Return the entities that Telegram finds by itself in what a person writes."""
    return [
        {"type": found.lastgroup, "offset": utf16_length(text[: found.start()]), "length": utf16_length(found[0])}
        for found in FOUND_IN_TEXT.finditer(text)
    ]
