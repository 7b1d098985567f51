"""Words planted in every place by people on their real wires, in an order that a random number makes up.

Alice and Bob write to one service on Telegram, in Slack and through a program, alone and in groups. Every word of hers
holds a mark, and so does her name; her numbers are found nowhere else. Everything of Bob's has another mark.
"""

import asyncio
import random
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from sqlalchemy import select
from standins.bot_api import BotApi, Person, Refuse
from standins.running import slack_bot, telegram_bot
from standins.slack_api import BOT_USER, SlackApi

from botservice import AgentContext, Author, Button, Storage, Tool, ToolCall
from botservice.people.identities import find_identity, join_identities
from botservice.storage.tables import deliveries, events, turns
from botservice.tools.remembering import remember
from botservice.tools.reminding import Reminders

PATIENCE_SECONDS = 60
MARK, OTHER = "qzalice", "qzbob"
ALICE = Person(7700123456, first_name=f"{MARK}name")
BOB = Person(8800123456, first_name=f"{OTHER}name")
PROGRAM = "77aliceprogram"
ACCOUNTS = [
    Author("telegram", str(ALICE.id)),
    Author("slack", "T0001:U0ALICE"),
    Author("program", PROGRAM),
]
OTHERS = [Author("telegram", str(BOB.id)), Author("slack", "T0001:U0BOB")]
NUMBERS = (str(ALICE.id), "U0ALICE", PROGRAM)
HERS = (MARK, *NUMBERS, "D0ALICE")
GROUP = -1001000000001
PNG = b"\x89PNG\r\n\x1a\n"


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
    """A service with everybody who writes to it."""

    storage: Storage
    telegram: BotApi
    slack: SlackApi
    service: object
    chance: random.Random
    count: int = 0
    said: list = field(default_factory=list)

    def words(self, mark: str = MARK) -> str:
        """Return words that nobody has said before."""
        self.count += 1
        thing, more = self.chance.choice(["dog", "plan", "boss"]), "so it is " * self.chance.choice([1, 9, 90])
        return f"my {thing} is {mark}{self.count:03} {more}"

    async def alone(self) -> None:
        self.said.append(self.telegram.person_says(self.words(), chat_id=ALICE.id))

    async def in_a_group(self) -> None:
        self.telegram.person_says(f"@{self.telegram.username} {self.words()}", chat_id=GROUP, user=ALICE)

    async def keep(self) -> None:
        self.telegram.person_says(f"keep: {self.words()[:60]}", chat_id=ALICE.id)

    async def remind(self) -> None:
        self.telegram.person_says(f"remind: {self.words()[:60]}", chat_id=ALICE.id)

    async def remind_a_group(self) -> None:
        self.telegram.person_says(f"@{self.telegram.username} remind: {self.words()[:60]}", chat_id=GROUP, user=ALICE)

    async def send_a_file(self) -> None:
        words = self.words()
        self.telegram.person_sends_document(words.encode(), chat_id=ALICE.id, name=f"{MARK}.txt", caption=words)

    async def send_a_picture(self) -> None:
        self.telegram.person_sends_photo(PNG + MARK.encode(), chat_id=ALICE.id, caption=self.words())

    async def send_a_voice(self) -> None:
        self.telegram.person_sends_voice(b"OggS" + MARK.encode(), chat_id=ALICE.id)

    async def edit(self) -> None:
        if self.said:
            said = self.chance.choice(self.said)
            self.telegram.person_edits(said.chat_id, said.message_id, self.words())

    async def choose(self) -> None:
        self.telegram.person_says(f"let me choose, says {MARK}", chat_id=ALICE.id)
        await self.quiet()
        found = [each for each in self.telegram.visible_messages(ALICE.id, from_bot=True) if each.buttons]
        if found:
            self.telegram.person_presses(ALICE.id, found[-1].message_id, found[-1].buttons[0][0]["callback_data"])

    async def export(self) -> None:
        self.telegram.person_says("/export", chat_id=ALICE.id)

    async def list_facts(self) -> None:
        self.telegram.person_says("/memory", chat_id=ALICE.id)

    async def give_a_persona(self) -> None:
        self.telegram.person_says(f"/persona be {self.words()[:60]}", chat_id=ALICE.id)

    async def fail_to_be_told(self) -> None:
        self.telegram.order(Refuse(403, "Forbidden: bot was blocked by the user"), "sendMessage", chat_id=ALICE.id)
        self.telegram.person_says(self.words(), chat_id=ALICE.id)

    async def slack_alone(self) -> None:
        self.slack.person_says(self.words())

    async def slack_in_a_channel(self) -> None:
        self.slack.person_says(f"<@{BOT_USER}> {self.words()}", channel="C0GENERAL")

    async def slack_file(self) -> None:
        file = self.slack.add_file(f"{MARK}.txt", self.words().encode(), "text/plain")
        self.slack.person_says(self.words(), files=[file], subtype="file_share")

    async def slack_command(self) -> None:
        self.slack.command(self.words(), channel="C0OTHER")

    async def judge(self) -> None:
        await self.slack_in_a_channel()
        await self.quiet()
        posts = [each for each in self.slack.bot_posts("C0GENERAL") if each.blocks]
        found = [block["elements"][0] for post in posts for block in post.blocks if block["type"] == "context_actions"]
        if found:
            self.slack.press(posts[-1], found[-1], value=found[-1]["positive_button"]["value"])

    async def by_a_program(self) -> None:
        context = await AgentContext.get_or_create(self.storage, {"transport": "program", "session_id": PROGRAM})
        context.metadata["note"] = MARK
        await context.save_metadata()
        await self.service.prompt(context, self.words(), author=ACCOUNTS[2])

    async def bob_alone(self) -> None:
        self.telegram.person_says(f"keep: {self.words(OTHER)[:60]}", chat_id=BOB.id)

    async def bob_in_a_group(self) -> None:
        self.telegram.person_says(f"@{self.telegram.username} {self.words(OTHER)}", chat_id=GROUP, user=BOB)

    async def bob_in_a_channel(self) -> None:
        self.slack.person_says(f"<@{BOT_USER}> {self.words(OTHER)}", channel="C0GENERAL", user="U0BOB")

    async def bob_sends_the_same_file(self) -> None:
        self.telegram.person_sends_photo(PNG + OTHER.encode(), chat_id=BOB.id, caption=self.words(OTHER))

    async def link(self) -> None:
        """Have all accounts of hers be one person."""

        def join(connection):
            for each in ACCOUNTS[1:]:
                first, second = find_identity(connection, ACCOUNTS[0]), find_identity(connection, each)
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

    async def plant(self) -> None:
        """Do everything, each once or twice, in any order."""
        deeds = [getattr(self, name) for name in _DEEDS]
        deeds += self.chance.sample(deeds, 6)
        self.chance.shuffle(deeds)
        for deed in deeds:
            await deed()
            if self.chance.random() < 0.7:
                await self.quiet()
        await self.quiet()
        await self.link()


_DEEDS = [
    *("alone", "in_a_group", "keep", "remind", "remind_a_group", "send_a_file", "send_a_picture", "send_a_voice"),
    *("edit", "choose", "export", "list_facts", "give_a_persona", "fail_to_be_told"),
    *("slack_alone", "slack_in_a_channel", "slack_file", "slack_command", "judge", "by_a_program"),
    *("bob_alone", "bob_in_a_group", "bob_in_a_channel", "bob_sends_the_same_file"),
]


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
async def town(storage: Storage, seed: int) -> AsyncIterator[Town]:
    """Run a service on both platforms until the block is left."""
    tools = [remember, Tool(offer), *Reminders().tools()]
    async with AsyncExitStack() as stack:
        telegram, slack = stack.enter_context(BotApi.running()), stack.enter_context(SlackApi.running())
        for person in (ALICE, BOB):
            telegram.add_private_chat(person)
        telegram.add_group(GROUP, members=[ALICE, BOB])
        slack.world.users["U0ALICE"]["profile"]["display_name"] = f"{MARK}name"
        first = await stack.enter_async_context(telegram_bot(telegram, storage, answer, tools=tools))
        await stack.enter_async_context(slack_bot(slack, storage, answer, tools=tools))
        yield Town(storage, telegram, slack, first.service, random.Random(seed))
