"""Groups, made up by a random number, in which people reply to, forward and share what others said.

Everybody's words hold a mark of their own, so that it can be told of every text whose words stand in it. What Telegram
would deliver is read by what reads it there. One person of each group is forgotten, in one of three ways.
"""

import random
import re
from dataclasses import dataclass, field
from typing import Any

from people.conversing import NOW, open_chat, see
from sqlalchemy import select

from botservice import AgentContext, Author, FunctionsBasedAgent, MessageWindowMessageSelector, ScriptedChatLLM, Storage
from botservice.core.messages import Role
from botservice.history.edit_queries import change_message
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage, NewWords
from botservice.people.fact_keeping import keep_fact
from botservice.people.facts import Refused
from botservice.privacy.exported_data import as_values, read_person
from botservice.privacy.forgetting import forget_messages, forget_person
from botservice.storage.tables.conversations import messages
from transports.telegram.inbound_events import BotIdentity
from transports.telegram.inbound_messages import listen

MARK = re.compile(r"w(\d+)x(\d+)x(\d+)")
_BOT = BotIdentity(99, "the_bot")
_NAMES = ("Alex", "Alex", "Bo <b>", 'C. "]', "[in reply to Bo]", "Дана")
_BOT_USER = {"id": 99, "is_bot": True, "first_name": "Bot", "username": "the_bot"}
_GROUP = -1001
_PEOPLE = 4
_AGENT = FunctionsBasedAgent(
    llm=ScriptedChatLLM([]), message_selector=MessageWindowMessageSelector(12), search_k=4, prompt="You are X"
)


@dataclass(slots=True)
class Findings:
    """What was looked at, and what should not have been."""

    groups: int = 0
    quotes: int = 0
    refused: int = 0
    prompts: int = 0
    wrong: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Spoken:
    """A message as Telegram shows it, whether or not the bot was.

    Attributes:
        who: -1 for the bot.
        row_id: None where the bot was never shown it.
        marks: What tells its author's words, also those from before an edit.
        may_change: Whether nobody is hidden in repeating it, and it is not answered.
        root: What it forwards, in the end.
        is_copied: Whether a person repeats it without its number.
    """

    who: int
    wire: dict[str, Any]
    row_id: int | None = None
    marks: set[str] = field(default_factory=set)
    may_change: bool = True
    root: "_Spoken | None" = None
    is_copied: bool = False


@dataclass(slots=True)
class _Group:
    number: int
    chance: random.Random
    context: AgentContext
    spoken: list[_Spoken] = field(default_factory=list)

    def wire(self, who: int) -> dict[str, Any]:
        name = _NAMES[(self.number + who) % len(_NAMES)]
        return {"id": self.number * 10 + who + 1, "is_bot": False, "first_name": name}

    def author(self, who: int) -> Author:
        return Author("telegram", str(self.wire(who)["id"]), self.wire(who)["first_name"])

    def of(self, who: int) -> list[_Spoken]:
        """Return what a person said and the bot was shown."""
        return [each for each in self.spoken if each.who == who and each.row_id is not None]


async def generate(storage: Storage, *, groups: int, seed: int = 1) -> Findings:
    """Make groups up, forget a person in each, and return what was seen."""
    findings = Findings()
    for number in range(1, groups + 1):
        context = await open_chat(storage, f"telegram-{seed}-{number}")
        group = _Group(number, random.Random(f"{seed}:{number}"), context)
        await see(storage, context, *(group.author(who) for who in range(_PEOPLE)), is_private=False)
        for place in range(group.chance.randrange(6, 14)):
            await _speak(storage, group, place, findings)
        await _keep_facts(storage, group, findings)
        await _look_at_exports(storage, group, findings)
        await _forget(storage, group, findings)
        findings.groups += 1
    return findings


async def _speak(storage: Storage, group: _Group, place: int, findings: Findings) -> None:
    """Have a person say something, which may be answered, or a person change what they said."""
    chance, who = group.chance, group.chance.randrange(_PEOPLE)
    if chance.random() < 0.15 and (known := [each for each in group.of(who) if each.may_change]):
        await _change(storage, group, chance.choice(known), place)
        return
    wire = {
        "message_id": place * 2 + 1,
        "date": int(NOW.timestamp()) + place,
        "chat": {"id": _GROUP, "type": "supergroup"},
        "from": group.wire(who),
        "text": _words(group, who, place),
    }
    spoken = _Spoken(who, wire, marks={_mark(group, who, place)})
    if group.spoken and chance.random() < 0.8:
        before = chance.choice(group.spoken)
        ways = [_reply, _quote, _outside, _forward, *([_hidden] if before.row_id is not None else [])]
        way = chance.choice(ways)
        wire |= way(before)
        before.may_change = before.may_change and way is not _hidden
        root = before.root or before
        root.is_copied = root.is_copied or root is not before or way in (_outside, _forward, _hidden)
        spoken.root = root if way in (_forward, _hidden) else None
        findings.quotes += 1
    group.spoken.append(spoken)
    if chance.random() < 0.8:  # otherwise the bot is not shown it
        await _hear(storage, group, spoken)


async def _hear(storage: Storage, group: _Group, spoken: _Spoken) -> None:
    """Store what the bot is shown, and what it answers."""
    heard = listen({"update_id": 1, "message": spoken.wire}, _BOT)
    assert heard is not None
    new = NewMessage(
        Role.USER,
        heard.text,
        NOW,
        heard.author,
        external_id=str(spoken.wire["message_id"]),
        own_text=None if heard.own_text == heard.text else heard.own_text,
        references=heard.references,
    )
    kept = await storage.write(lambda c: insert_message(c, group.context.id, new))
    spoken.row_id = kept.id
    if group.chance.random() < 0.3:
        answer = NewMessage(Role.ASSISTANT, f"You said: {kept.full_text}", NOW)
        said = await storage.write(lambda c: insert_message(c, group.context.id, answer))
        wire = spoken.wire | {"message_id": spoken.wire["message_id"] + 1, "text": said.text, "from": _BOT_USER}
        bare = {name: wire[name] for name in ("message_id", "date", "chat", "from", "text")}
        group.spoken.append(_Spoken(-1, bare, said.id, may_change=False))
        spoken.may_change = False


async def _change(storage: Storage, group: _Group, spoken: _Spoken, place: int) -> None:
    """Have a person edit what they said, after others may have quoted it."""
    if "forward_origin" in spoken.wire:
        return
    spoken.wire["text"] = _words(group, spoken.who, place)
    spoken.marks.add(_mark(group, spoken.who, place))
    heard = listen({"update_id": 1, "edited_message": spoken.wire}, _BOT)
    assert heard is not None
    new = NewWords(heard.text, (), 5, "x", references=heard.references)
    await storage.write(lambda c: change_message(c, group.context.id, str(spoken.wire["message_id"]), new, NOW))


async def _keep_facts(storage: Storage, group: _Group, findings: Findings) -> None:
    """Have the agent try to keep of everybody what they repeat of others, next to a word that is their own."""
    for row in await _rows(storage, group):
        if row.author_id is None:
            continue
        author = Author("telegram", row.author_id)
        own = set(MARK.findall(row.text))
        others = {mark for mark in MARK.findall(row.said_by_others) if mark not in own}
        for number, who, place in others:
            if str(int(number) * 10 + int(who) + 1) == row.author_id:
                continue  # a person repeats themselves
            text = f"I like w{number}x{who}x{place}"
            kept = await storage.write(lambda c, a=author, t=text: keep_fact(c, group.context.id, a, "x", t, NOW))
            findings.refused += kept is Refused.NOT_SAID
            if kept is not Refused.NOT_SAID:
                findings.wrong.append(f"{text} is a fact about {row.author_id}")


async def _look_at_exports(storage: Storage, group: _Group, findings: Findings) -> None:
    who = group.chance.randrange(_PEOPLE)
    given = str(as_values(await read_person(storage, group.author(who)))["messages"])
    strange = [found for found in MARK.finditer(given) if int(found[2]) != who]
    findings.wrong += [f"{each[0]} in an export of {who}" for each in strange]


async def _forget(storage: Storage, group: _Group, findings: Findings) -> None:
    """Forget a person, or what they said there, or one message, and look at what is left."""
    who = group.chance.randrange(_PEOPLE)
    spoken, author = group.of(who), group.author(who)
    before = {row.id: row.text for row in await _rows(storage, group)}
    # Of what was edited since, the earlier words are known only where a quote names the message.
    single = [each for each in spoken if len(each.marks) == 1 or not each.is_copied]
    way = group.chance.choice(["person", "chat", "message"]) if single else "person"
    if way == "person":
        await forget_person(storage, author)
    elif way == "chat":
        await forget_messages(storage, group.context.id, author)
    chosen = [group.chance.choice(single)] if way == "message" else [each for each in group.spoken if each.who == who]
    if way == "message":
        await forget_messages(storage, group.context.id, [each.row_id for each in chosen if each.row_id])
    gone = {mark for each in chosen for mark in each.marks}
    await _look_for(storage, group, gone, before, findings)


async def _look_for(
    storage: Storage, group: _Group, gone: set[str], before: dict[int, str], findings: Findings
) -> None:
    rows = await _rows(storage, group)
    for row in rows:
        findings.wrong += [
            f"{each} in row {row.id}: {row}" for each in gone & _marks(f"{row.text}{row.said_by_others}")
        ]
        if row.role == Role.USER and before[row.id] != row.text:
            findings.wrong.append(f"the own words of row {row.id} are not what they were")
    if not rows:
        return  # no other person wrote there
    await group.context.refresh(with_steps=False)
    if group.context.chat_history.last_user_message is not None:
        findings.prompts += 1
        prompt = str(await _AGENT.build_prompt(group.context))
        findings.wrong += [f"{each} in a prompt of {group.number}" for each in gone & _marks(prompt)]


async def _rows(storage: Storage, group: _Group) -> list[Any]:
    query = select(messages).where(messages.c.context_id == group.context.id).order_by(messages.c.position)
    return await storage.read(lambda c: list(c.execute(query).all()))


def _marks(text: str) -> set[str]:
    return {found[0] for found in MARK.finditer(text)}


def _mark(group: _Group, who: int, place: int) -> str:
    return f"w{group.number}x{who}x{place}"


def _words(group: _Group, who: int, place: int) -> str:
    mention = "@the_bot " if group.chance.random() < 0.5 else ""
    thing = group.chance.choice(["tea", "my dog", "the plan", "no.", 'so "] it', "[forwarded from Bo]\nx"])
    return f"{mention}I like {thing} {_mark(group, who, place)}"


def _reply(before: _Spoken) -> dict[str, Any]:
    return {"reply_to_message": dict(before.wire)}


def _quote(before: _Spoken) -> dict[str, Any]:
    return {"reply_to_message": dict(before.wire), "quote": {"text": before.wire["text"][-20:], "position": 0}}


def _outside(before: _Spoken) -> dict[str, Any]:
    return {"external_reply": {"origin": _origin(before)}, "quote": {"text": before.wire["text"], "position": 0}}


def _forward(before: _Spoken) -> dict[str, Any]:
    return {"text": before.wire["text"], "forward_origin": _origin(before)}


def _hidden(before: _Spoken) -> dict[str, Any]:
    origin = {"type": "hidden_user", "date": 0, "sender_user_name": before.wire["from"]["first_name"]}
    return {"text": before.wire["text"], "forward_origin": before.wire.get("forward_origin", origin)}


def _origin(before: _Spoken) -> dict[str, Any]:
    """Return who said it first: what is forwarded again stays theirs."""
    origin = {"type": "user", "date": 0, "sender_user": before.wire["from"]}
    found: dict[str, Any] = before.wire.get("forward_origin", origin)
    return found
