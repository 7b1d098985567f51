"""Who pauses a group on Telegram, in long walks: every way of writing a command, by everybody, in every topic.

A model says what holds: only a command that an owner, an administrator of the moment or an anonymous administrator
types counts, in its topic, or outside of topics for all of them.
"""

import random
import time
from dataclasses import dataclass, field
from typing import Any

import pytest
from standins.bot_api import BotApi
from standins.bot_api.chats import Person

from botservice import Storage
from botservice.people.access import Access

GROUP, CHANNEL = -1001000000001, {"id": -1002000000009, "type": "channel", "title": "News"}
OWNER, ADMIN, OTHER, MEMBER = (Person(42 + n, name) for n, name in enumerate(("Ann", "Ben", "Cleo", "Eve")))
TOPICS = (None, 7, 8)
STEPS = 40
OWNED = Access(owners=frozenset({"telegram:42"}))


@dataclass
class Model:
    """What is paused: topics, and None for the whole group."""

    paused: set[int | None] = field(default_factory=set)
    administrators: set[int] = field(default_factory=lambda: {ADMIN.id})

    def obey(self, command: str, topic: int | None) -> None:
        if command == "/pause":
            self.paused.add(topic)
        else:
            self.paused.discard(topic)

    def is_paused(self, topic: int | None) -> bool:
        return bool(self.paused & {None, topic})


def write(api: BotApi, dice: random.Random, model: Model) -> str:
    """Have a person write a command in some way, and tell the model if it counts; return what was done."""
    command, topic = dice.choice(["/pause", "/resume", "/pause", "/resume", "/resume"]), dice.choice(TOPICS)
    who: Any = dice.choice([OWNER, ADMIN, OTHER, MEMBER, MEMBER, "anonymous", "channel", "linked"])
    way = dice.choice(["typed", "typed", "typed", "named", "forwarded", "via a bot", "for another", "quoted", "edited"])
    origin = {"type": "user", "sender_user": OWNER.as_user(), "date": int(time.time())}
    extra: dict[str, Any] = {"forwarded": {"forward_origin": origin}, "via a bot": {"via_bot": _BOT}}.get(way, {})
    text = {"named": f"{command}@{api.username}", "for another": f"{command}@other_bot", "edited": "~"}.get(
        way, command
    )
    entities = None
    if way == "quoted":
        entities = [{"type": "blockquote", "offset": 0, "length": len(text)}]
    how = {"chat_id": GROUP, "thread_id": topic, "entities": entities}
    if isinstance(who, Person):
        said = api.person_says(text, user=who, extra=extra, **how)
    elif who == "anonymous":
        said = api.chat_says(text, extra=extra, **how)
    else:
        linked = {"is_automatic_forward": True, "from": _TELEGRAM, "forward_origin": _OF_CHANNEL}
        said = api.chat_says(text, sender=CHANNEL, extra=linked if who == "linked" else extra, **how)
    if way == "edited":
        api.person_edits(GROUP, said.message_id, command)
    in_charge = who == "anonymous" or (isinstance(who, Person) and who.id in model.administrators | {OWNER.id})
    if in_charge and way in ("typed", "named"):
        model.obey(command, topic)
    return f"{who} {way} {command} in {topic}"


async def settle(api: BotApi, count: int) -> None:
    """Return when all topics are done with what was said: they answer a command, whatever is paused."""
    for topic in TOPICS:
        api.person_says("/reminders", chat_id=GROUP, user=MEMBER, thread_id=topic)
    await api.until(lambda: sum("No reminders" in each for each in api.visible_texts(GROUP)) == count)


_BOT = {"id": 9, "is_bot": True, "first_name": "Inline"}
_TELEGRAM = {"id": 777000, "is_bot": False, "first_name": "Telegram"}
_OF_CHANNEL = {"type": "channel", "chat": CHANNEL, "message_id": 5, "date": 1_790_000_000}


@pytest.mark.slow
@pytest.mark.any_database
@pytest.mark.parametrize("seed", range(4))
async def test_only_people_in_charge_change_what_is_paused(api: BotApi, bot_on_both, storage: Storage, seed: int):
    dice, model, done = random.Random(seed), Model(), list[str]()
    api.add_group(GROUP, members=(OWNER, ADMIN, OTHER, MEMBER), topics={7: "Plans", 8: "Lunch"})
    api.promote(GROUP, ADMIN)
    async with bot_on_both(api, access=OWNED):
        for number in range(STEPS):
            if dice.random() < 0.2:
                person = dice.choice([ADMIN, OTHER])
                model.administrators ^= {person.id}
                api.promote(GROUP, person, "administrator" if person.id in model.administrators else "member")
            done.append(write(api, dice, model))
            await settle(api, 6 * number + 3)  # other topics do not wait for it
            for topic in TOPICS:
                api.person_says(f"@{api.username} ping {number} {topic}", chat_id=GROUP, user=MEMBER, thread_id=topic)
            await settle(api, 6 * number + 6)
            pings = {f"ping {number} {topic}" for topic in TOPICS}
            shown = {each for each in pings for said in api.visible_texts(GROUP) if said.endswith(each)}
            assert shown == {f"ping {number} {each}" for each in TOPICS if not model.is_paused(each)}, done
