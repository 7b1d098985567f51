"""A town in which words are planted in every place, by people on their real wires, as a random number has it.

Alice, Bob and Carol write to one service on Telegram, in Slack, in the browser, on a terminal and through a program,
alone and in groups. Every word of hers holds a mark, and so does her name; her numbers are found nowhere else. The
words of each other person have a mark of their own.
"""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

import httpx
from sqlalchemy import select
from standins.bot_api import BotApi, Person
from standins.running import Running, serving, slack_bot, telegram_bot, web_bot
from standins.slack_api import SlackApi

from botservice import AgentService, Author, Button, Storage, Tool, ToolCall
from botservice.agent.remembering import remember
from botservice.agent.reminding import Reminders
from botservice.people.queries import find_identity, join_identities
from botservice.storage.tables.conversations import deliveries, events, messages, turns

PATIENCE_SECONDS = 60
MARK, OTHER, CAROLS = "qzalice", "qzbob", "qzcarol"
ALICE = Person(7700123456, first_name=f"{MARK}name")
BOB = Person(8800123456, first_name=f"{OTHER}name")
CAROL = Person(9900123456, first_name=f"{CAROLS}name")
PROGRAM, TERMINAL = "77aliceprogram", "77aliceterminal"
ACCOUNTS = {
    "telegram": Author("telegram", str(ALICE.id)),
    "slack": Author("slack", "T0001:U0ALICE"),
    "program": Author("program", PROGRAM),
    "terminal": Author("terminal", TERMINAL),
}
OTHERS = [Author("telegram", str(BOB.id)), Author("slack", "T0001:U0BOB")]
NUMBERS = (str(ALICE.id), "U0ALICE", PROGRAM, TERMINAL)
HERS = (MARK, *NUMBERS, "D0ALICE")
GROUP, OWED = -1001000000001, -1001000000002
Deed = Callable[["Town"], object]


async def offer() -> list:
    """Offer a choice."""
    return ["Which?", Button("Small", value="small it is")]


def answer(prompt):
    """Do what the last message says with a tool, or repeat it."""
    last = prompt[-1]
    content = last["content"]
    if isinstance(content, list):
        content = " ".join(part.get("text", "a file") for part in content)
    if last["role"] == "tool":
        return f"So be it: {content}"
    words = content.rpartition("]: ")[2].rpartition(": ")[2]
    for order, call in (
        ("keep", ("remember", {"text": words, "topic": "thing"})),
        ("remind", ("remind_me", {"text": words, "in_days": 3})),
        ("choose", ("offer", {})),
    ):
        if order in content:
            return ToolCall("c1", *call)
    return f"You said: {words}"


@dataclass(slots=True)
class Town:
    """A service with everybody who writes to it.

    Attributes:
        said: Messages of hers on Telegram that she may change.
        replies: Messages of Bob's there that reply to hers.
        url: Of the database.
        owed: What keeps an answer from being sent.
    """

    storage: Storage
    url: str
    telegram: BotApi
    slack: SlackApi
    browser: httpx.AsyncClient
    service: AgentService
    chance: random.Random
    count: int = 0
    said: list = field(default_factory=list)
    replies: list = field(default_factory=list)
    owed: object = None

    def words(self, mark: str = MARK) -> str:
        """Return words that nobody has said before."""
        self.count += 1
        thing, more = self.chance.choice(["dog", "plan", "boss"]), "so it is " * self.chance.choice([1, 9, 90])
        return f"my {thing} is {mark}{self.count:03} {more}"

    def in_group(self, text: str, *, user: Person = ALICE, **how):
        """Have a person say something in the group on Telegram."""
        return self.telegram.person_says(text, chat_id=GROUP, user=user, **how)

    async def browse(self, text: str, **fields) -> None:
        """Have her say something in the browser."""
        self.count += 1
        body = {"id": f"message-{self.count:03}", "text": text, **fields}
        (await self.browser.post("/web/messages", json=body)).raise_for_status()

    @asynccontextmanager
    async def serving(self, transport) -> AsyncIterator[Running]:
        """Have the service answer also through this, until the block is left."""
        async with AsyncExitStack() as stack:
            yield await serving(stack, self.service, transport, "")

    async def link(self) -> None:
        """Have all accounts of hers be one person."""

        def join(connection):
            web = select(messages.c.author_id).where(messages.c.author_platform == "web").limit(1)
            browsing = Author("web", connection.execute(web).scalar_one())
            for each in (*list(ACCOUNTS.values())[1:], browsing):
                first, second = find_identity(connection, ACCOUNTS["telegram"]), find_identity(connection, each)
                assert first is not None
                assert second is not None
                join_identities(connection, first, second)

        await self.storage.write(join)

    async def quiet(self) -> None:
        """Return when all has arrived, and nothing is to be answered, changed or sent."""
        has_begun = threading.Event()
        self.slack.in_loop(has_begun.set)  # what was sent before is on its way then
        await asyncio.to_thread(has_begun.wait, PATIENCE_SECONDS)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while self._has_more() or await self.storage.read(_is_busy):  # noqa: ASYNC110 - only the database tells
                await asyncio.sleep(0.01)

    def _has_more(self) -> bool:
        return bool(self.slack.events.tasks or self.telegram.updates.pending)

    async def plant(self, deeds: Sequence[Deed]) -> None:
        """Do everything, each once or twice, in any order."""
        chosen = [*deeds, *self.chance.sample(list(deeds), 6)]
        self.chance.shuffle(chosen)
        for deed in chosen:
            await deed(self)
            if self.chance.random() < 0.7:
                await self.quiet()
        await self.quiet()
        await self.link()


def _is_busy(connection):
    return any(
        connection.execute(query.limit(1)).first()
        for query in (
            select(turns.c.id).where(turns.c.status.in_(["queued", "running"])),
            select(deliveries.c.id).where(deliveries.c.finished_at.is_(None)),
            select(events.c.id).where(events.c.turn_id.is_(None), events.c.handled_at.is_(None)),
        )
    )


@asynccontextmanager
async def town(storage: Storage, url: str, seed: int) -> AsyncIterator[Town]:
    """Run a service everywhere until the block is left."""
    tools = [remember, Tool(offer), *Reminders().tools()]
    async with AsyncExitStack() as stack:
        telegram, slack = stack.enter_context(BotApi.running()), stack.enter_context(SlackApi.running())
        for person in (ALICE, BOB):
            telegram.add_private_chat(person)
        telegram.add_group(GROUP, members=[ALICE, BOB])
        telegram.add_group(OWED, members=[ALICE, CAROL])
        slack.world.users["U0ALICE"]["profile"]["display_name"] = f"{MARK}name"
        first = await stack.enter_async_context(telegram_bot(telegram, storage, answer, tools=tools))
        await stack.enter_async_context(slack_bot(slack, storage, answer, tools=tools))
        web = await stack.enter_async_context(web_bot(storage, answer, tools=tools))
        # A connection for each message: one that is kept may be closed by the server just when it is used again.
        fresh = httpx.Limits(max_keepalive_connections=0)
        client = httpx.AsyncClient(base_url=web.url, timeout=PATIENCE_SECONDS, limits=fresh, verify=False)
        browser = await stack.enter_async_context(client)
        (await browser.get("/", headers={"Accept": "text/html"})).raise_for_status()
        yield Town(storage, url, telegram, slack, browser, first.service, random.Random(seed))
