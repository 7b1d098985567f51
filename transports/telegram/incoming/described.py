"""What is sent besides words and files, in a few words and in brackets."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from telegram import ExternalReplyInfo, Message

from botservice.quoting import in_one_line, quote_name
from transports.telegram.incoming.message_fields import name_content


def describe(message: Message | ExternalReplyInfo) -> str | None:
    """Return what is sent besides words and files; None where nothing is."""
    return next((say(value) for name, say in _KINDS if (value := getattr(message, name, None)) is not None), None)


def describe_newer(message: Message) -> str | None:
    """Return what is named of a message that holds nothing which this service knows; None where it only reports."""
    return name_content({**dict.fromkeys(_present(message), True), **message.api_kwargs}) or None


def _present(message: Message) -> list[str]:
    return [name for name in message.__slots__ if not name.startswith("_") and getattr(message, name, None)]


def _sticker(sticker: Any) -> str:
    return str(sticker.emoji or "[sticker]")


def _dice(dice: Any) -> str:
    return f"{dice.emoji} [{dice.value}]"


def _venue(venue: Any) -> str:
    return f"[place: {venue.title}, {venue.address} ({venue.location.latitude}, {venue.location.longitude})]"


def _location(at: Any) -> str:
    kind = "location" if at.live_period is None else "live location"
    return f"[{kind}: {at.latitude}, {at.longitude}]"


def _contact(contact: Any) -> str:
    return f"[contact: {_full_name(contact)}, {contact.phone_number}]"


def _poll(poll: Any) -> str:
    return f"[poll: {poll.question}: {_listed(option.text for option in poll.options)}]"


def _poll_option(added: Any) -> str:
    return f"[added to a poll: {in_one_line(added.option_text)}]"


def _checklist(checklist: Any) -> str:
    return f"[checklist: {in_one_line(checklist.title)}: {_listed(_task(each) for each in checklist.tasks)}]"


def _task(task: Any) -> str:
    return f"{in_one_line(task.text)} ✓" if task.completion_date else in_one_line(task.text)


def _tasks_added(added: Any) -> str:
    return f"[added to a checklist: {_listed(in_one_line(each.text) for each in added.tasks)}]"


def _tasks_done(change: Any) -> str:
    """Return which tasks were ticked; their numbers, where the checklist itself is not shown."""
    message = change.checklist_message
    tasks = message.checklist.tasks if message is not None and message.checklist is not None else ()
    known = {task.id: in_one_line(task.text) for task in tasks}
    done, undone = change.marked_as_done_task_ids or (), change.marked_as_not_done_task_ids or ()
    parts = [
        f"{what}: {_listed(known.get(each, str(each)) for each in ids)}"
        for what, ids in (("ticked", done), ("no longer ticked", undone))
        if ids
    ]
    return f"[checklist, {_listed(parts, '; ')}]"


def _story(story: Any) -> str:
    name = getattr(story.chat, "full_name", None) or getattr(story.chat, "title", None)
    return f"[story of {quote_name(name)}]" if name else "[story]"


def _game(game: Any) -> str:
    return f"[game: {in_one_line(game.title)}]"


def _invoice(invoice: Any) -> str:
    return f"[invoice: {in_one_line(invoice.title)}]"


def _payment(payment: Any) -> str:
    return f"[payment: {payment.total_amount} in the smallest unit of {payment.currency}]"


def _giveaway(giveaway: Any) -> str:
    return f"[giveaway: {giveaway.winner_count} to win]"


def _giveaway_over(giveaway: Any) -> str:
    return f"[giveaway is over: {giveaway.winner_count} have won]"


def _gift(info: Any) -> str:
    words = f": {in_one_line(info.text)}" if info.text else ""
    return f"[gift {info.gift.sticker.emoji or ''}{words}]".replace(" ]", "]").replace(" :", ":")


def _unique_gift(info: Any) -> str:
    return f"[gift: {quote_name(info.gift.base_name)} #{info.gift.number}]"


def _people(shared: Any) -> str:
    return f"[people chosen: {_listed(_full_name(each) or str(each.user_id) for each in shared.users)}]"


def _chat(shared: Any) -> str:
    return f"[chat chosen: {quote_name(shared.title, str(shared.chat_id))}]"


def _web_app(sent: Any) -> str:
    return f"[from the app behind the button {quote_name(sent.button_text)}: {in_one_line(sent.data)}]"


def _paid_media(paid: Any) -> str:
    return f"[behind a price of {paid.star_count} stars: {_listed(str(each.type) for each in paid.paid_media)}]"


def _passport(_: Any) -> str:
    return "[documents of a passport, which nobody reads here]"


def _listed(parts: Iterable[str], between: str = " / ") -> str:
    """Return parts in one line.

    Raises:
        ValueError: there are none, so that what holds them is not what it was when this was written.
    """
    found = between.join(parts)
    if not found:
        raise ValueError("nothing is listed")
    return found


def _full_name(person: Any) -> str:
    return " ".join(part for part in (person.first_name, person.last_name) if part)


# A venue comes with its location, and a checklist's change with the checklist: what says more stands first.
_KINDS: Final[tuple[tuple[str, Callable[[Any], str]], ...]] = (
    *(("sticker", _sticker), ("dice", _dice), ("venue", _venue), ("location", _location), ("contact", _contact)),
    *(("poll", _poll), ("poll_option_added", _poll_option), ("checklist", _checklist)),
    *(("checklist_tasks_done", _tasks_done), ("checklist_tasks_added", _tasks_added), ("story", _story)),
    *(("game", _game), ("invoice", _invoice), ("successful_payment", _payment), ("paid_media", _paid_media)),
    *(("giveaway", _giveaway), ("giveaway_winners", _giveaway_over), ("giveaway_completed", _giveaway_over)),
    *(("gift", _gift), ("unique_gift", _unique_gift), ("users_shared", _people), ("chat_shared", _chat)),
    *(("web_app_data", _web_app), ("passport_data", _passport)),
)
DESCRIBED_HERE: Final[Mapping[str, Callable[[Any], str]]] = dict(_KINDS)
