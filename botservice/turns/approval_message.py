"""The message that asks a person to approve tool calls, before and after their decision."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import Any, Final

from botservice.core.formatted_text import CodeBlock, FormattedText, Span
from botservice.core.messages import Author, Button, ButtonStyle, Message, Moment, Role
from botservice.core.quoting import shortened
from botservice.core.states import PendingStatus
from botservice.core.visible_text import shown_beginning, visible
from botservice.texts import in_language
from botservice.texts.formatted import below, code, quoted, say, time
from botservice.turns.approval_queries import is_named
from botservice.turns.call_decisions import ALLOW, DENY, say_order
from botservice.turns.readable_arguments import arguments_in_one_line, has_masked, readable_arguments
from botservice.turns.waiting_calls import WaitingCall

MOST_MESSAGES: Final = 5  # calls of a step that are asked about in messages of their own
_ROOM: Final = 2_400  # characters for all calls of one message: it has to stay one message everywhere
MOST_LISTED: Final = 40  # calls of one message; the others are counted
_MOST_PRESSED: Final = 200  # calls that a button names; Slack, button: value of at most 2,000 characters
_LONGEST_LINE: Final = 200
_LONGEST_NAME: Final = 80
_SHORTEST_LINE: Final = 30
_DECIDED: Final = {
    PendingStatus.ALLOWED: "approval.allowed",
    PendingStatus.DENIED: "approval.denied",
    PendingStatus.EXPIRED: "approval.expired",
    PendingStatus.WITHDRAWN: "approval.withdrawn",
}
_LABELS: Final = {
    PendingStatus.ALLOWED: "approval.was_allowed",
    PendingStatus.DENIED: "approval.was_denied",
    PendingStatus.EXPIRED: "approval.was_late",
    PendingStatus.WITHDRAWN: "approval.was_stopped",
}


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that a person is asked about, with what is shown of it.

    Attributes:
        decided_by: The name of the person who decided.
    """

    call: WaitingCall
    arguments: Mapping[str, Any]
    decided_by: str | None = None


def show_requests(
    requests: Sequence[ApprovalRequest],
    language: str | None,
    now: datetime,
    *,
    has_buttons: bool = True,
    zone: tzinfo | None = None,
) -> Message:
    """Write the message about calls as they are now, with buttons for the undecided ones.

    Args:
        has_buttons: Whether the platform shows buttons; without them, the message says what to write.
        zone: The time zone of the person who asked; None if it is unknown.
    """
    open_ones = [each for each in requests if each.call.is_waiting]
    expires_at = requests[0].call.expires_at
    until = time(expires_at, language, now=now, zone=zone)
    key = "approval.how" if has_buttons else "approval.how_written"
    how = say(key, language, number=open_ones[0].call.id, until=until) if open_ones else None
    text = _one(requests[0], language, how) if len(requests) == 1 else _many(requests, language, how)
    buttons = _buttons([each.call for each in open_ones], language) if open_ones else ()
    if len(open_ones) > 1 and not _is_shown_whole(open_ones):
        buttons = buttons[1:]  # what nobody has read whole is allowed one by one
    moments = (Moment(until.text, expires_at),) if open_ones else ()
    said = Message(None, Role.SYSTEM, text.plain, created_at=now, buttons=buttons, language=language, moments=moments)
    return replace(said, formatted=text)


def _one(request: ApprovalRequest, language: str | None, how: FormattedText | None) -> FormattedText:
    call, who = request.call, name_asker(request.call.author, language)
    key = _DECIDED.get(call.status, "approval.ask")
    shown, _ = readable_arguments(request.arguments)
    is_cut = shown != readable_arguments(request.arguments, is_short=False)[0]
    if len(shown) > _ROOM:
        shown, is_cut = f"{shown_beginning(shown, _ROOM)}… ({len(shown)})", True
    parts = [say(key, language, tool=code(call.tool), who=who)]
    if shown:
        parts.append(_code_block(shown))
    if request.decided_by is not None and request.decided_by != (call.author and call.author.name):
        parts.append(say("approval.by", language, name=_quoted_name(request.decided_by)))
    if is_cut:
        parts.append(say("approval.cut", language, number=call.id))
    if has_masked(request.arguments):
        parts.append(say("approval.masked", language))
    return below(*parts, how, is_close=True)


def _many(requests: Sequence[ApprovalRequest], language: str | None, how: FormattedText | None) -> FormattedText:
    first = requests[0].call
    room = _room(requests)
    lines, is_whole = [], True
    for each in requests[:MOST_LISTED]:
        arguments, is_all = arguments_in_one_line(each.arguments, room)
        label = _LABELS.get(each.call.status)
        state = "" if label is None else f" — {in_language(label, language)}"
        lines.append(f"{each.call.id}: {visible(each.call.tool, is_code=True)}({arguments}){state}")
        is_whole = is_whole and is_all
    key = "approval.decided_many" if how is None else "approval.ask_many"
    said = say(key, language, count=len(requests), who=name_asker(first.author, language))
    parts = [said, _code_block("\n".join(lines))]
    if len(requests) > MOST_LISTED:
        parts.append(say("approval.more", language, count=len(requests) - MOST_LISTED))
    elif not is_whole:
        parts.append(say("approval.cut", language, number=first.id))
    if any(has_masked(each.arguments) for each in requests):
        parts.append(say("approval.masked", language))
    return below(*parts, how, is_close=True)


def _code_block(shown: str) -> FormattedText:
    return FormattedText((CodeBlock(shown),))


def _room(requests: Sequence[ApprovalRequest]) -> int:
    listed = min(len(requests), MOST_LISTED)
    return max(_SHORTEST_LINE, min(_LONGEST_LINE, _ROOM // listed - _SHORTEST_LINE))


def _is_shown_whole(requests: Sequence[ApprovalRequest]) -> bool:
    room = _room(requests)
    return len(requests) <= MOST_LISTED and all(arguments_in_one_line(each.arguments, room)[1] for each in requests)


def _buttons(calls: Sequence[WaitingCall], language: str | None) -> tuple[Button, ...]:
    numbers = [each.id for each in calls]
    is_one = len(numbers) == 1
    keys = ("approval.allow_button", "approval.deny_button")
    if not is_one:
        keys = ("approval.allow_all_button", "approval.deny_all_button")
    allow, deny = (in_language(key, language) for key in keys)
    denied = say_order(DENY, numbers) if len(numbers) <= _MOST_PRESSED else f"/{DENY} all"
    buttons = (
        Button(allow, say_order(ALLOW, numbers), style=ButtonStyle.SUCCESS),
        Button(deny, denied, style=ButtonStyle.DANGER),
    )
    if not is_one or not is_named(calls[0].author):
        return buttons
    return (*buttons, Button(in_language("approval.always_button", language), say_order(ALLOW, numbers, "always")))


def name_asker(author: Author | None, language: str | None) -> Span:
    """Return the name of a person; an id says nothing to people."""
    name = None if author is None else author.name
    return _quoted_name(name) if name and name.strip() else Span(in_language("approval.you", language))


def _quoted_name(name: str) -> Span:
    return quoted(shortened(name, _LONGEST_NAME))
