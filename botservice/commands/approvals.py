"""/allow, /deny and /tools: deciding on tool calls that wait for approval, and listing calls and tools."""

import re
from typing import Final

from botservice.commands.command import Command
from botservice.conversation.tool_calls import read_calls
from botservice.core.formatted_text import CodeBlock, FormattedText, Span
from botservice.core.messages import Button, Moment
from botservice.core.states import PendingKind
from botservice.people.access_values import AccessRole
from botservice.storage.database import Connection
from botservice.texts.formatted import below, bulleted, code, line
from botservice.turns.approval_queries import ToolGrant, find_grants, revoke_grants
from botservice.turns.call_decisions import (
    ALLOW,
    DENY,
    Decider,
    DecisionRequest,
    choose,
    decide_now,
    is_own,
    parse_order,
)
from botservice.turns.call_queries import find_open
from botservice.turns.commands import CommandAnswer, CommandRequest
from botservice.turns.readable_arguments import readable_arguments
from botservice.turns.waiting_calls import WaitingCall


async def _decide(request: CommandRequest) -> CommandAnswer:
    order = parse_order(request.call)
    if order is None:
        return CommandAnswer(request.say("approval.how_to_say"))
    message, storage, context_id = request.message, request.context.storage, request.context.id
    said_at = min((each.received_at for each in request.turn.events), default=request.now)
    is_owner = request.role is AccessRole.OWNER
    decider = Decider(message.author, is_owner=is_owner, is_private=message.is_private, said_at=said_at)
    if order.is_showing:
        return await storage.read(lambda connection: _show(connection, request, order, decider))
    decision = await storage.write(  # before the answer, which says what came of it
        lambda connection: decide_now(connection, context_id, order, decider, message.language, request.now),
        fence=request.claim,
    )
    return CommandAnswer(decision.text)


def _show(connection: Connection, request: CommandRequest, order: DecisionRequest, decider: Decider) -> CommandAnswer:
    """Return all arguments of calls, with secrets masked."""
    choice = choose(connection, request.context.id, order, decider, request.now)
    if not choice.calls:
        return CommandAnswer(request.say(choice.refusal))
    parts = []
    for call in choice.calls:
        arguments, _ = readable_arguments(call.arguments_in(read_calls(connection, call.step_id)), is_short=False)
        parts.append(request.say("approval.full", number=call.id, tool=code(call.tool)))
        if arguments:
            parts.append(FormattedText((CodeBlock(arguments),)))
    return CommandAnswer(below(*parts, is_close=True))


ALLOW_COMMAND: Final = Command(ALLOW, _decide)
DENY_COMMAND: Final = Command(DENY, _decide)


_MOST_BUTTONS: Final = 8
_ASK: Final = re.compile(r"ask\s+([\w.-]{1,64})", re.IGNORECASE)


async def _answer(request: CommandRequest) -> CommandAnswer:
    author, context = request.message.author, request.context

    def find(connection: Connection) -> tuple[list[WaitingCall], list[ToolGrant]]:
        waiting = [each for each in find_open(connection, context.id) if each.is_waiting]
        own = [each for each in waiting if each.kind is not PendingKind.LATER and is_own(connection, each, author)]
        return own, find_grants(connection, context.id, author)

    waiting, granted = await context.storage.read(find)
    wanted = _ASK.fullmatch(request.call.arguments.strip())
    tool = "" if wanted is None else wanted[1]
    if author is not None and tool in {each.tool for each in granted}:
        return CommandAnswer(
            request.say("tools.ask_again", tool=code(tool)),
            apply=lambda connection: revoke_grants(connection, context.id, author, [tool]),
        )
    parts = [request.say("tools.unknown", tool=code(tool))] if tool else []
    heads = {PendingKind.APPROVAL: request.say("tools.waiting"), PendingKind.QUESTION: request.say("tools.asked")}
    for kind, head in heads.items():
        if of_kind := [each for each in waiting if each.kind is kind]:
            parts += [head, bulleted(_line(each, request) for each in of_kind)]
    if granted:
        parts += [request.say("tools.granted"), bulleted(line(code(each.tool)) for each in granted)]
    buttons = [
        Button(request.label("tools.ask_button", tool=each.tool), f"/{TOOLS.name} ask {each.tool}")
        for each in granted[:_MOST_BUTTONS]
    ]
    times = (at for each in waiting for at in (each.created_at, each.expires_at))
    moments = tuple(Moment(request.say_time(at).text, at) for at in times)
    return CommandAnswer(below(*parts) if parts else request.say("tools.nothing"), tuple(buttons), moments=moments)


def _line(call: WaitingCall, request: CommandRequest) -> FormattedText:
    return request.say(
        "tools.line",
        number=Span(str(call.id), bold=True),
        tool=code(call.tool),
        since=request.say_time(call.created_at),
        until=request.say_time(call.expires_at),
    )


TOOLS: Final = Command("tools", _answer)
