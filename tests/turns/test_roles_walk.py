"""Random talks of three people with different roles: no tool runs for a person without the right, whatever they try."""

import random
from dataclasses import dataclass, field

import pytest

from tests.turns.ranks import team

NAMES = ("olga", "anna", "bob")
ROLES = ("owner", "member", "guest", "deployer", "oncall", "deployer oncall")
WANTED = {"look": set(), "read": {"member"}, "deploy": {"deployer"}, "wipe": {"owner", "oncall"}}
STEPS = 9


@dataclass
class Question:
    """What a person wants a tool for.

    Attributes:
        sender: Who sent the words.
        asker: Who wants the answer: another person, where they ask for it again.
        button: What a button says that allows it, while it waits.
    """

    sender: str
    asker: str
    tool: str
    number: int
    button: str | None = None


@dataclass
class Talk:
    """What is known of a group without looking into the bot.

    Attributes:
        questions: Those that the bot knows, oldest first.
    """

    chat: str
    roles: dict[str, set[str]] = field(default_factory=lambda: {"olga": {"owner"}, "anna": set(), "bob": set()})
    questions: list[Question] = field(default_factory=list)
    is_always: set[tuple[str, str]] = field(default_factory=set)

    def account(self, name):
        return name if name == "olga" else f"{name}{self.chat}"

    def may(self, name, tool):
        roles, wanted = self.roles[name], WANTED[tool]
        if not wanted or "owner" in roles:
            return True
        return bool((roles | ({"member"} if roles else set())) & wanted)

    def may_run(self, question):
        return all(self.may(each, question.tool) for each in (question.sender, question.asker))


class Walk:
    """One talk at random, compared at each step."""

    def __init__(self, bot, seed):
        self.bot, self.random, self.talk, self.number = bot, random.Random(seed), Talk(f"g{seed}"), seed * 1000
        self.history = []

    async def go(self):
        doings = [self.ask, self.ask, self.pass_on, self.retry, self.change_role, self.change_role, self.approve]
        for _ in range(STEPS):
            doing = self.random.choice(doings)
            before = len(self.bot.ran)
            expected = await doing()
            ran = self.bot.ran[before:]
            assert (ran, ran if expected is None else expected) == (ran, ran), self.history
            for tool, number in ran:
                question = next(each for each in reversed(self.talk.questions) if each.number == number)
                assert self.talk.may_run(question), self.history
                assert tool == question.tool

    def note(self, *what):
        self.history.append((*what, {name: sorted(roles) for name, roles in self.talk.roles.items()}))

    async def say(self, who, text, *held):
        held = [(kind, self.talk.account(name), words) for kind, name, words in held]
        return await self.bot.ask(self.talk.account(who), text, *held, chat=self.talk.chat)

    async def ask(self):
        who, tool = self.random.choice(NAMES), self.random.choice(list(WANTED))
        self.number += 1
        return await self.ask_for(Question(who, who, tool, self.number), f"use {tool} {self.number}")

    async def pass_on(self):
        """Forward the words of another person, or reply to them."""
        who, other, tool = self.random.choice(NAMES), self.random.choice(NAMES), self.random.choice(list(WANTED))
        self.number += 1
        held = (self.random.choice(["forward", "reply"]), other, f"use {tool} {self.number}")
        return await self.ask_for(Question(who, who, tool, self.number), "do that", held)

    async def retry(self):
        """Ask for the last answer again, whoever asked for it."""
        who = self.random.choice(NAMES)
        done = [each for each in self.talk.questions if each.button is None]
        if not done:
            await self.say(who, "/retry")
            return []
        self.talk.questions.remove(done[-1])
        question = Question(done[-1].sender, who, done[-1].tool, done[-1].number)
        return await self.ask_for(question, "/retry")

    async def ask_for(self, question, text, *held):
        """Say something, and return what has to run at once."""
        self.note("ask", question, text)
        self.talk.questions.append(question)
        asked = len(self.bot.platform.buttons)
        said = await self.say(question.asker, text, *held)
        may = self.talk.may_run(question)
        assert said.startswith("got: Error: not allowed") == (not may), (said, self.history)
        if question.tool != "wipe" or not may:
            assert not said.startswith("May I"), (said, self.history)
            return [(question.tool, question.number)] if may else []
        if said.startswith("May I"):
            newest = list(self.bot.platform.buttons.values())[asked:]
            question.button = newest[-1][0]
            return []
        assert (question.asker, "wipe") in self.talk.is_always, (said, self.history)
        return [(question.tool, question.number)]

    async def approve(self):
        waiting = [each for each in self.talk.questions if each.button]
        if not waiting:
            return []
        question, who = self.random.choice(waiting), self.random.choice(NAMES)
        says = self.random.choice([question.button, question.button, f"{question.button} always"])
        says = self.random.choice([says, says, says.replace("/allow", "/deny").replace(" always", "")])
        may_decide = who == question.asker or "owner" in self.talk.roles[who]
        self.note("press", who, says, question)
        count = len(self.bot.shown(self.talk.chat))
        assert await self.bot.press(self.talk.account(who), says, self.talk.chat) == may_decide, self.history
        if not may_decide:
            return []
        said = await self.bot.next(count, self.talk.chat)
        question.button = None
        if says.startswith("/deny"):
            return []
        if says.endswith("always"):
            self.talk.is_always.add((question.asker, "wipe"))
        may = self.talk.may_run(question)
        assert said == "got: wiped" if may else said.startswith("got: Error: not allowed"), (said, self.history)
        return [("wipe", question.number)] if may else []

    async def change_role(self):
        who, whose = self.random.choice(("olga", *NAMES)), self.random.choice(("anna", "bob"))
        names = self.random.choice(ROLES)
        self.note("role", who, whose, names)
        said = await self.say(who, f"/role messenger:{self.talk.account(whose)} {names}")
        assert ("now has this role" in said) == ("owner" in self.talk.roles[who]), (said, self.history)
        if "owner" in self.talk.roles[who]:
            self.talk.roles[whose] = set(names.split()) - {"guest"}
        return []


async def walk(storage, seeds):
    async with team(storage) as bot:
        for seed in seeds:
            await Walk(bot, seed).go()
        return bot.ran


@pytest.mark.any_database
async def test_in_random_talks_no_tool_runs_for_somebody_without_the_right(storage):
    assert await walk(storage, range(12))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.any_database
async def test_in_two_hundred_random_talks_no_tool_runs_for_somebody_without_the_right(storage):
    ran = await walk(storage, range(12, 212))
    assert {tool for tool, _ in ran} == set(WANTED)
