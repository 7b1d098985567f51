"""/allow and /deny: a person's word about calls of tools that wait for it."""

from functools import partial
from typing import Final

from sqlalchemy import Connection

from botservice.access.values import AccessRole
from botservice.commands.command import Command
from botservice.contexts.context import AgentContext
from botservice.messages import ToolCall
from botservice.turns.start.commands import CommandAnswer, CommandRequest
from botservice.turns.waiting.arguments import fenced, readable
from botservice.turns.waiting.calls import WaitingCall
from botservice.turns.waiting.deciding import Choice, Decider, carry_out, choose, say_taken
from botservice.turns.waiting.orders import ALLOW, DENY, parse_order


async def _decide(request: CommandRequest) -> CommandAnswer:
    order = parse_order(request.call)
    if order is None:
        return CommandAnswer(request.say("approval.how_to_say"))
    decider = Decider(request.message.author, is_owner=request.role is AccessRole.OWNER)
    context = request.context

    def find(connection: Connection) -> Choice:
        return choose(connection, context.id, order, decider, request.now)

    choice = await context.storage.read(find)
    if not choice.calls:
        return CommandAnswer(request.say(choice.refusal))
    if order.is_showing:
        return await _show(request, choice)
    decide = partial(carry_out, calls=choice.calls, order=order, decider=decider, now=request.now)

    def apply(connection: Connection) -> None:
        decide(connection)

    return CommandAnswer(say_taken(choice.calls, order, request.message.language), apply=apply)


async def _show(request: CommandRequest, choice: Choice) -> CommandAnswer:
    """Return all of the arguments; what is secret in them is shown to nobody."""
    parts = []
    for call in choice.calls:
        made = await find_made(request.context, call)
        arguments, _ = readable({} if made is None else made.arguments, is_short=False)
        parts += [request.say("approval.full", number=call.id, tool=f"`{call.tool}`"), fenced(arguments or " ")]
    return CommandAnswer("\n".join(parts))


async def find_made(context: AgentContext, call: WaitingCall) -> ToolCall | None:
    """Return a call that waits as the model made it."""
    found = await AgentContext.load(context.storage, context.id, call.turn_id)
    step = None if found.open_step is None else found.open_step.item
    made = () if step is None else step.get_value("tool_calls") or ()
    return made[call.call_index] if call.call_index < len(made) else None


ALLOW_COMMAND: Final = Command(ALLOW, _decide)
DENY_COMMAND: Final = Command(DENY, _decide)
