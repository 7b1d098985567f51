"""/usage: what a person has used, and what is left of every budget that they meet."""

from typing import Final

from sqlalchemy import Connection

from botservice.commands.command import Command
from botservice.people.access_records import read_names
from botservice.people.budgets import Standing
from botservice.people.budgets_periods import period_start
from botservice.people.usage import Payer, UsageLine, list_usage
from botservice.policies import NANO, Period, Unit
from botservice.turns.commands import CommandAnswer, CommandRequest

_WHOSE: Final = {"person": "You", "chat": "This chat", "service": "This bot"}


async def _usage(request: CommandRequest) -> CommandAnswer:
    payer = Payer.of(request.context.id, request.context.context_keys, request.message.author)
    storage, budgets, now = request.context.storage, request.budgets, request.now

    def read(connection: Connection) -> tuple[UsageLine, UsageLine]:
        names = read_names(connection, payer.person) if payer.person else []
        today = list_usage(connection, None, period_start(Period.DAY, now), persons=names)
        month = list_usage(connection, None, period_start(Period.MONTH, now), persons=names)
        return today[0], month[0]

    today, month = await storage.read(read)
    lines = [f"Today: {_used(today, budgets.currency)}", f"This month: {_used(month, budgets.currency)}"]
    standings = await budgets.standings(storage, payer, now)
    if standings:
        lines.append("")
        lines += [f"- {_stands(each, budgets.currency)}" for each in standings]
    return CommandAnswer("\n".join([*lines, "", "Days and months are those of UTC."]))


def _used(line: UsageLine, currency: str) -> str:
    tokens = line.input_tokens + line.output_tokens
    cached = f" ({line.cached_tokens:,} of them from a cache)" if line.cached_tokens else ""
    cost = f", {_money(line.cost, currency)}" if line.cost else ""
    calls = f"{line.calls:,} call{'' if line.calls == 1 else 's'}"
    return f"{tokens:,} tokens{cached} in {calls} of the model{cost}"


def _stands(standing: Standing, currency: str) -> str:
    limit = standing.limit
    used, most = (
        (_money(standing.used, currency), _money(limit.amount, currency))
        if limit.unit is Unit.MONEY
        else (f"{standing.used:,}", f"{limit.amount:,} tokens")
    )
    percent = min(100 * standing.used // limit.amount, 100)
    until = f"{standing.ends_at:%Y-%m-%d %H:%M}"
    return f"{_WHOSE[standing.scope]}: {used} of {most} a {limit.period} ({percent} %), until {until}"


def _money(nano: int, currency: str) -> str:
    return f"{nano / NANO:,.4f} {currency}"


USAGE: Final = Command("usage", _usage)
