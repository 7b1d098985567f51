"""A group of people with different roles, and a model that calls whatever tool it is told to, offered or not."""

import contextlib
import json
import re

from botservice import Author, InboundMessage, ScriptedChatLLM, ToolCall, tool
from botservice.commands.standard import standard_commands
from botservice.core.message_references import Reference, ReferenceKind
from botservice.people.access import Access
from botservice.turns.buttons import write_buttons
from botservice.turns.commands import parse_command
from botservice.turns.event_queries import MAX_OWN_TURNS
from botservice.turns.inbox import Inbox
from botservice.turns.transport import BUTTONS
from botservice.turns.turn import EventKind, InboundEvent
from tests.turns.messenger import Messenger, office

OWNERS = Access(owners=frozenset({"messenger:olga"}))
REFUSED = "got: Error: not allowed: "
_ORDER = re.compile(r"use (\w+) (\d+)")


def person(who: str) -> Author:
    return Author("messenger", who, who.capitalize())


class Group(Messenger):
    """Messages say who sent them, and whose words they forward or reply to."""

    def __init__(self):
        super().__init__()
        self.buttons = {}

    async def read(self, event):
        said = json.loads(event.raw)
        held = tuple(Reference(ReferenceKind(kind), person(who), text, "m0") for kind, who, text in said["held"])
        author = person(said["who"]) if said["who"] else None
        return InboundMessage(
            said["text"],
            author,
            external_id=said["id"],
            command=parse_command(said["text"]),
            is_private=said["is_private"],
            is_addressed=not said["text"].startswith("~"),
            references=held,
        )

    def is_shared(self, context_keys):
        return not context_keys["chat_id"].startswith("private")

    def plan(self, answer, events):
        kept = {BUTTONS: write_buttons(answer.buttons)} if answer.buttons else {}
        return [{"text": answer.text, "says": [each.says for each in answer.buttons], **kept}] if answer.text else []

    async def send(self, context_keys, delivery):
        external_id = await super().send(context_keys, delivery)
        self.buttons[external_id] = delivery.payload["says"]
        return external_id


def obeying(prompt):
    """Call the tool that the newest words of people name, whether there is one or not; then say what it gave."""
    if prompt[-1]["role"] == "tool":
        return f"got: {prompt[-1]['content']}"
    said = [each["content"] for each in prompt if each["role"] == "user"][-1]
    orders = _ORDER.findall(said)
    return ToolCall("", orders[-1][0], {"number": int(orders[-1][1])}) if orders else f"re: {said}"


class Team:
    """People, their chats, and what was run for them."""

    def __init__(self, opened, inbox, model, ran):
        self.office, self.inbox, self.model, self.ran = opened, inbox, model, ran
        self.platform = opened.messenger
        self._number = 0

    async def say(self, who, text, *held, chat="1", of=None):
        """Hand in a message, or a change of the one with the id `of`; return its id."""
        self._number += 1
        number = of or f"m{self._number}"
        said = {"text": text, "who": who, "held": held, "is_private": chat.startswith("private"), "id": number}
        kind = EventKind.MESSAGE if of is None else EventKind.EDIT
        raw = json.dumps(said).encode()
        event = InboundEvent(f"e{self._number}", keys(chat), self._number, raw, kind, external_id=of)
        await self.inbox.accept("messenger", [event])
        return number

    async def ask(self, who, text, *held, chat="1"):
        """Say something, and return what the bot says to it."""
        count = len(self.shown(chat))
        await self.say(who, text, *held, chat=chat)
        return await self.next(count, chat)

    async def next(self, count, chat="1"):
        """Return what is said once more than so many messages are visible."""
        await self.platform.until(lambda: len(self.shown(chat)) > count)
        return self.shown(chat)[count]

    async def press(self, who, says, chat="1"):
        """Press a button, and return whether it decided something."""
        made = await self.inbox.decide(keys(chat), says, person(who), is_private=chat.startswith("private"))
        return made is not None and made.is_taken

    def shown(self, chat="1"):
        return self.platform.visible.get(chat, [])

    def asked(self):
        """Return what the buttons of the newest open question say."""
        return [each for each in self.platform.buttons.values() if each][-1]

    @property
    def offered(self):
        """The names of the tools that the last call of the model offered."""
        return {each["function"]["name"] for each in self.model.tools[-1]}


def keys(chat):
    return {"transport": "messenger", "chat_id": chat}


def rank_tools(ran):
    """Return a tool for everybody, and others for people with a role."""

    @tool
    async def look(number: int) -> str:
        """Look."""
        ran.append(("look", number))
        return "seen"

    @tool(roles=["member"])
    async def read(number: int) -> str:
        """Read."""
        ran.append(("read", number))
        return "read"

    @tool(roles=["deployer"])
    async def deploy(number: int) -> str:
        """Deploy."""
        ran.append(("deploy", number))
        return "deployed"

    @tool(roles=["owner", "oncall"], needs_approval=True)
    async def wipe(number: int) -> str:
        """Wipe."""
        ran.append(("wipe", number))
        return "wiped"

    return [look, read, deploy, wipe]


@contextlib.asynccontextmanager
async def team(storage, *, ran=None, tools=(), access=OWNERS, script=obeying, **options):
    """Run a bot in a group of people with roles."""
    ran, model = [] if ran is None else ran, ScriptedChatLLM(script)
    async with office(
        storage,
        model,
        messenger=options.pop("messenger", None) or Group(),
        tools=[*rank_tools(ran), *tools],
        access=access,
        commands=standard_commands(),
        **options,
    ) as opened:
        yield Team(opened, Inbox(storage, opened.worker.wake, access=access), model, ran)


def role(name, *roles):
    return f"/role messenger:{name} {' '.join(roles)}"


async def say_in_one_turn(bot, *said):
    """Have several messages share a turn: the last of as many as may wait each in a turn of its own."""
    for _ in range(MAX_OWN_TURNS - 1):
        await bot.say("olga", "hello")
    for who, text in said:
        await bot.say(who, text)
    await bot.office.worker.start()
    return await bot.next(MAX_OWN_TURNS - 1)
