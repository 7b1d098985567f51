"""/tools: listing calls that wait for approval in a chat, and tools that need none there."""

import re
from typing import Final

from botservice.commands.command import Command
from botservice.core.formatted_text import FormattedText, Span
from botservice.core.messages import Button, Moment
from botservice.storage.database import Connection
from botservice.texts.formatted import below, bulleted, code, line
from botservice.turns.call_queries import find_open
from botservice.turns.command_parsing import CommandAnswer, CommandRequest
from botservice.turns.decisions import is_own
from botservice.turns.grant_queries import ToolGrant, find_grants, revoke_grants
from botservice.turns.waiting_calls import PendingKind, WaitingCall

_MOST_BUTTONS: Final = 8
_ASK: Final = re.compile(r"ask\s+([\w.-]{1,64})", re.IGNORECASE)


async def _answer(request: CommandRequest) -> CommandAnswer:
    author, context = request.message.author, request.context

    def find(connection: Connection) -> tuple[list[WaitingCall], list[ToolGrant]]:
        waiting = [each for each in find_open(connection, context.id) if each.is_waiting]
        own = [each for each in waiting if each.kind is PendingKind.APPROVAL and is_own(connection, each, author)]
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
    if waiting:
        parts += [request.say("tools.waiting"), bulleted(_line(each, request) for each in waiting)]
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
