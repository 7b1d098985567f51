"""A group in which a bot listens, and what its people say and see."""

import contextlib
from dataclasses import replace

from standins.clocks import LastingMinute
from turns.group_scenes import gate_of, settle
from turns.messenger import Messenger, office

from botservice import AgentContext, Author
from botservice.core.messages import InboundMessage
from botservice.people.access import Access
from botservice.turns.commands import parse_command

PEOPLE = {"ann": "7", "ben": "8"}
GROUP = {"transport": "messenger", "chat_id": "1"}
CHAT = "messenger:1"
OWNED = Access(owners=frozenset({"messenger:7"}))


class Group(Messenger):
    """A group of Ann, who may own the bot, and Ben: "ben: text" is Ben's, and "@ text" addresses the bot."""

    is_private = False

    async def read(self, event):
        who, _, said = event.raw.decode().rpartition(": ")
        is_addressed = said.startswith(("@ ", "/"))
        message = InboundMessage(
            said.removeprefix("@ "),
            Author(self.name, PEOPLE[who or "ann"], (who or "ann").title()),
            is_addressed=is_addressed,
            is_private=self.is_private,
        )
        return replace(message, command=parse_command(said))


@contextlib.asynccontextmanager
async def group_with(storage, models, *, clock=None, gate=None, **options):
    clock = clock or LastingMinute()
    gate = gate or gate_of(models)
    async with office(storage, models, messenger=Group(), clock=clock, gate=gate, **options) as bot:
        bot.clock = clock
        yield bot


async def say(bot, *texts, order=1):
    """Have people say something, and nothing more for a while."""
    for number, each in enumerate(texts):
        await bot.write(each, order=order + number)
    await settle(bot.storage, is_whole=False)
    bot.clock.pass_(seconds=5)
    await settle(bot.storage)


async def history(storage):
    context = await AgentContext.get_or_create(storage, GROUP)
    return [each.text for each in await context.chat_history.messages()]


def shown(bot):
    return bot.messenger.visible.get("1", [])
