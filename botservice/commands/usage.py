"""/usage: what a person has used, and what is left of each of their budgets."""

from collections.abc import Mapping
from typing import Final

from botservice.commands.command import Command
from botservice.core.formatted_text import FormattedText
from botservice.core.policies import NANO, Period, Scope, Unit
from botservice.people.access_queries import read_names
from botservice.people.budgets import GATE, Standing
from botservice.people.usage import Payer, UsageBy, UsageLine, period_start
from botservice.people.usage_queries import list_usage
from botservice.storage.database import Connection
from botservice.texts.formatted import below, bulleted
from botservice.turns.commands import CommandAnswer, CommandRequest

_WHOSE: Final[Mapping[str, str]] = {
    Scope.PERSON: "usage.person",
    Scope.CHAT: "usage.chat",
    Scope.SERVICE: "usage.service",
}


async def _usage(request: CommandRequest) -> CommandAnswer:
    payer = Payer.of(request.context.id, request.context.context_keys, request.message.author)
    storage, budgets, now = request.context.storage, request.budgets, request.now

    def read(connection: Connection) -> tuple[UsageLine, UsageLine, list[UsageLine]]:
        names = read_names(connection, payer.person) if payer.person else []
        today = list_usage(connection, None, period_start(Period.DAY, now), persons=names)
        month = list_usage(connection, None, period_start(Period.MONTH, now), persons=names)
        by_model = list_usage(connection, UsageBy.MODEL, period_start(Period.MONTH, now), persons=names)
        return today[0], month[0], [each for each in by_model if each.subject == GATE]

    today, month, gate = await storage.read(read)
    used = [_used(each, request, budgets.currency) for each in (today, month)]
    decided = [request.say("usage.gate", used=_used(each, request, budgets.currency)) for each in gate]
    totals = (request.say("usage.today", used=used[0]), request.say("usage.this_month", used=used[1]))
    standings = await budgets.standings(storage, payer, now)
    listed = [_stands(each, request, budgets.currency) for each in standings]
    parts = [below(*totals, *decided, is_close=True), bulleted(listed) if listed else None]
    return CommandAnswer(below(*parts, request.say("usage.utc")))


def _used(line: UsageLine, request: CommandRequest, currency: str) -> str:
    cost = request.label("usage.cost", money=_money(line.cost, request, currency)) if line.cost else ""
    return request.label(
        "usage.used",
        tokens=request.label("usage.tokens", count=line.input_tokens + line.output_tokens),
        cached=request.label("usage.cached", count=line.cached_tokens) if line.cached_tokens else "",
        count=line.calls,
        cost=cost,
    )


def _stands(standing: Standing, request: CommandRequest, currency: str) -> FormattedText:
    limit = standing.limit
    used, most = (
        (_money(standing.used, request, currency), _money(limit.amount, request, currency))
        if limit.unit is Unit.MONEY
        else (request.say_number(standing.used), request.label("usage.tokens", count=limit.amount))
    )
    return request.say(
        "usage.budget",
        whose=request.say(_WHOSE[standing.scope]),
        used=used,
        most=most,
        period=request.say("usage.a_day" if limit.period is Period.DAY else "usage.a_month"),
        percent=min(100 * standing.used // limit.amount, 100),
        until=request.say_time(standing.ends_at),
    )


def _money(nano: int, request: CommandRequest, currency: str) -> str:
    return f"{request.say_number(nano / NANO, places=4)} {currency}"


USAGE: Final = Command("usage", _usage, is_personal=True)
