"""What the fields of a message say: whether a person typed it, and in brackets what is sent besides words and files.

Source of all fields: core.telegram.org/bots/api#message.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from botservice.core.quoting import in_one_line, quote_name
from transports.common.json_fields import field, items_of
from transports.markdown.links import link

# A message with one of these was written by another person, by a program, or for another reader.
NOT_TYPED: Final = frozenset(
    {
        "forward_origin",
        # The same in Bot API servers before 7.0.
        *("forward_from", "forward_from_chat", "forward_sender_name", "forward_date"),
        "is_automatic_forward",  # a channel's post in its discussion group
        "is_paid_post",  # a channel's post, too
        "suggested_post_info",  # what a person wants a channel to publish
        "via_bot",  # an inline bot wrote it, a person chose it unseen
        "sender_business_bot",  # a bot wrote it in a person's name
        "business_connection_id",  # it belongs to the chat of two people
        "is_from_offline",  # a greeting, an away message, a scheduled one
        *("guest_bot_caller_user", "guest_bot_caller_chat"),  # a guest bot's answer
        "reply_markup",  # only bots put buttons under a message
        "web_app_data",  # a web app sent it
        "managed_bot_created",
    }
)
# Entities that mark words of a message as quoted.
QUOTES: Final = ("blockquote", "expandable_blockquote")


def is_typed(message: object) -> bool:
    """Return whether a person wrote the text of a message themselves, to be read here."""
    if not isinstance(message, Mapping) or not NOT_TYPED.isdisjoint(message):
        return False
    # Telegram puts a bot of its own there where a person writes in the name of a chat.
    return field(message, "from", "is_bot") is not True or message.get("sender_chat") is not None


_FIELDS: Final = tomllib.loads(Path(__file__).with_name("message_fields.toml").read_text(encoding="utf-8"))
WORDS, FILES, ENVELOPE, REPORTS = (frozenset(_FIELDS[kind]) for kind in ("words", "files", "envelope", "reports"))
_LONGEST_NAME: Final = 40

Content = Mapping[str, Any]
"""What stands in one field of a message, as Telegram sends it."""

_DEEPEST: Final = 32
# What stands below each other, what stands next to each other, and what is words by itself.
# The names are those of core.telegram.org/bots/api#richblock and #richtext
_BELOW: Final = ("title", "summary", "blocks", "items", "rows", "cells", "caption", "credit", "text")
_FORMULA: Final = ("expression", "alternative_text", "alt")
_LISTS_BELOW: Final = frozenset({"blocks", "items", "rows"})


def name_content(body: Mapping[str, Any]) -> str:
    """Return in a few words what an unreadable message holds; empty where it only reports something."""
    if any(name in body for name in REPORTS):
        return ""
    known = FILES | DESCRIBED | WORDS
    names = [name for name, value in body.items() if (name in known and value) or _is_newer(name, value)]
    return f"[sent, but cannot be read here: {', '.join(_spell(name) for name in names)}]" if names else ""


def _is_newer(name: str, value: object) -> bool:
    """Return whether a field holds something that this service does not know; a number or a flag does not."""
    return name not in KNOWN and isinstance(value, Mapping | list) and bool(value)


def _spell(name: str) -> str:
    """Return a field's name as words: nothing in it ends the bracket that it stands in."""
    return "".join(each if each.isalnum() else " " for each in name)[:_LONGEST_NAME]


def describe(message: Mapping[str, Any]) -> str | None:
    """Return what is sent besides words and files, or None if nothing is, or nothing in the shape of today."""
    found = next((name for name in DESCRIBED_HERE if message.get(name) is not None), None)
    if found is None:
        return None
    say, content = DESCRIBED_HERE[found], message[found]
    try:
        return say(content) if callable(say) else say.format_map(_in_lines(content))
    except (LookupError, TypeError, ValueError, AttributeError):
        return None


def _in_lines(content: Content) -> dict[str, Any]:
    return {name: in_one_line(each) if isinstance(each, str) else each for name, each in content.items()}


def _sticker(sticker: Content) -> str:
    return str(sticker.get("emoji") or "[sticker]") if sticker["file_id"] else ""


def _location(at: Content) -> str:
    kind = "location" if at.get("live_period") is None else "live location"
    return f"[{kind}: {at['latitude']}, {at['longitude']}]"


def _contact(contact: Content) -> str:
    return f"[contact: {_full_name(contact)}, {contact['phone_number']}]"


def _poll(poll: Content) -> str:
    return f"[poll: {poll['question']}: {_listed(option['text'] for option in poll['options'])}]"


def _checklist(checklist: Content) -> str:
    return f"[checklist: {in_one_line(checklist['title'])}: {_listed(_task(each) for each in checklist['tasks'])}]"


def _task(task: Content) -> str:
    return f"{in_one_line(task['text'])} ✓" if task.get("completion_date") else in_one_line(task["text"])


def _tasks_added(added: Content) -> str:
    return f"[added to a checklist: {_listed(in_one_line(each['text']) for each in added['tasks'])}]"


def _tasks_done(change: Content) -> str:
    """Return which tasks were ticked; their numbers, where the checklist itself is not shown."""
    tasks = ((change.get("checklist_message") or {}).get("checklist") or {}).get("tasks", ())
    known = {task["id"]: in_one_line(task["text"]) for task in tasks}
    ticked, unticked = (change.get(f"marked_as_{kind}_task_ids") for kind in ("done", "not_done"))
    parts = [
        f"{what}: {_listed(known.get(each, str(each)) for each in ids)}"
        for what, ids in (("ticked", ticked), ("no longer ticked", unticked))
        if ids
    ]
    return f"[checklist, {_listed(parts, '; ')}]"


def _story(story: Content) -> str:
    name = _full_name(story["chat"]) or story["chat"].get("title")
    return f"[story of {quote_name(name)}]" if name else "[story]"


def _gift(info: Content) -> str:
    words = f": {in_one_line(info['text'])}" if info.get("text") else ""
    return f"[gift {info['gift']['sticker'].get('emoji') or ''}{words}]".replace(" ]", "]").replace(" :", ":")


def _unique_gift(info: Content) -> str:
    return f"[gift: {quote_name(info['gift']['base_name'])} #{info['gift']['number']}]"


def _people(shared: Content) -> str:
    return f"[people chosen: {_listed(_full_name(each) or str(each['user_id']) for each in shared['users'])}]"


def _chat(shared: Content) -> str:
    return f"[chat chosen: {quote_name(shared.get('title'), str(shared['chat_id']))}]"


def _web_app(sent: Content) -> str:
    return f"[from the app behind the button {quote_name(sent['button_text'])}: {in_one_line(sent['data'])}]"


def _paid_media(paid: Content) -> str:
    kinds = _listed(str(each["type"]) for each in paid["paid_media"])
    return f"[behind a price of {paid['star_count']} stars: {kinds}]"


def _passport(passport: Content) -> str:
    return "[documents of a passport, which nobody reads here]" if passport["credentials"] else ""


def _listed(parts: Iterable[str], between: str = " / ") -> str:
    """Return parts in one line."""
    found = between.join(parts)
    if not found:
        raise ValueError("nothing is listed")
    return found


def _full_name(person: Content) -> str:
    return " ".join(part for part in (person.get("first_name"), person.get("last_name")) if part)


# A venue comes with its location, and a checklist's change with the checklist: what says more stands first.
DESCRIBED_HERE: Final[Mapping[str, str | Callable[[Content], str]]] = {
    "sticker": _sticker,
    "dice": "{emoji} [{value}]",
    "venue": "[place: {title}, {address} ({location[latitude]}, {location[longitude]})]",
    "location": _location,
    "contact": _contact,
    "poll": _poll,
    "poll_option_added": "[added to a poll: {option_text}]",
    "checklist": _checklist,
    "checklist_tasks_done": _tasks_done,
    "checklist_tasks_added": _tasks_added,
    "story": _story,
    "game": "[game: {title}]",
    "invoice": "[invoice: {title}]",
    "successful_payment": "[payment: {total_amount} in the smallest unit of {currency}]",
    "paid_media": _paid_media,
    "giveaway": "[giveaway: {winner_count} to win]",
    "giveaway_winners": "[giveaway is over: {winner_count} have won]",
    "giveaway_completed": "[giveaway is over: {winner_count} have won]",
    "gift": _gift,
    "unique_gift": _unique_gift,
    "users_shared": _people,
    "chat_shared": _chat,
    "web_app_data": _web_app,
    "passport_data": _passport,
}

DESCRIBED: Final = frozenset(DESCRIBED_HERE)
"""What is said in a few words, in brackets."""

KNOWN: Final = WORDS | FILES | DESCRIBED | ENVELOPE | REPORTS


def with_links(text: str | None, entities: object) -> str:
    """Return a text with the address of every link that shows other words. Telegram counts in UTF-16 code units."""
    links = [each for each in items_of(entities) if _is_link(each)]
    if not text or not links:
        return text or ""
    data, at, parts = text.encode("utf-16-le", "surrogatepass"), 0, list[str]()
    for each in sorted(links, key=lambda each: int(each["offset"])):
        begin, end = 2 * each["offset"], 2 * (each["offset"] + each["length"])
        if begin >= at:
            parts += [_decoded(data[at:begin]), link(_decoded(data[begin:end]), each["url"])]
            at = end
    return "".join([*parts, _decoded(data[at:])])


def _is_link(entity: object) -> bool:
    if not isinstance(entity, Mapping) or entity.get("type") != "text_link":
        return False
    numbers = [entity.get(name) for name in ("offset", "length")]
    return isinstance(entity.get("url"), str) and all(isinstance(each, int) and each >= 0 for each in numbers)


def _decoded(data: bytes) -> str:
    return data.decode("utf-16-le", "surrogatepass")


def words_of(rich: object) -> str:
    """Return the words of a rich message, each block in a line of its own; empty where there are none."""
    return "\n".join(line.strip() for line in _words(rich, 0).splitlines() if line.strip())


def _words(value: object, depth: int, separator: str = "") -> str:
    if depth > _DEEPEST:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return separator.join(part for each in value if (part := _words(each, depth + 1, separator)))
    return _of_object(value, depth) if isinstance(value, Mapping) else ""


def _of_object(value: Mapping[str, Any], depth: int) -> str:
    parts = []
    for name in _BELOW:
        between = "\n" if name in _LISTS_BELOW else " | " if name == "cells" else ""
        parts.append(_words(value.get(name), depth + 1, between))
    found = [part for part in parts if part]
    if found and value.get("type") == "url" and isinstance(value.get("url"), str):
        return link("".join(found), value["url"])
    return "\n".join(found) or next((str(value[name]) for name in _FORMULA if isinstance(value.get(name), str)), "")
