"""/allow and /deny: deciding on tool calls that wait for approval."""

from typing import Final

from botservice.commands.command import Command
from botservice.conversation.context import AgentContext
from botservice.core.formatted_text import CodeBlock, FormattedText
from botservice.core.messages import ToolCall
from botservice.people.access_values import AccessRole
from botservice.texts.formatted import below, code
from botservice.turns.approval_message import readable
from botservice.turns.command_parsing import CommandAnswer, CommandRequest
from botservice.turns.decisions import CallSelection, Decider, choose, decide_now
from botservice.turns.parsing_decisions import ALLOW, DENY, parse_order
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
        found = await storage.read(lambda connection: choose(connection, context_id, order, decider, request.now))
        return await _show(request, found)
    decision = await storage.write(  # before the answer, which says what came of it
        lambda connection: decide_now(connection, context_id, order, decider, message.language, request.now),
        fence=request.claim,
    )
    return CommandAnswer(decision.text)


async def _show(request: CommandRequest, choice: CallSelection) -> CommandAnswer:
    """Return all arguments of a call, with secrets masked."""
    if not choice.calls:
        return CommandAnswer(request.say(choice.refusal))
    parts = []
    for call in choice.calls:
        made = await find_made(request.context, call)
        arguments, _ = readable({} if made is None else made.arguments, is_short=False)
        parts.append(request.say("approval.full", number=call.id, tool=code(call.tool)))
        if arguments:
            parts.append(FormattedText((CodeBlock(arguments),)))
    return CommandAnswer(below(*parts, is_close=True))


async def find_made(context: AgentContext, call: WaitingCall) -> ToolCall | None:
    """Return the tool call of a waiting call, as the model made it."""
    found = await AgentContext.load(context.storage, context.id, call.turn_id)
    step = None if found.open_step is None else found.open_step.item
    made = () if step is None else step.get_value("tool_calls") or ()
    return made[call.call_index] if call.call_index < len(made) else None


ALLOW_COMMAND: Final = Command(ALLOW, _decide)
DENY_COMMAND: Final = Command(DENY, _decide)
