"""Whose role counts: of the person who sent the words, of each of several, and in whichever process a turn goes on."""

import asyncio

import pytest
from sqlalchemy import delete

from botservice import AgentContext
from botservice.storage.tables.conversations import messages
from botservice.turns.event_queries import MAX_OWN_TURNS
from tests.turns.ranks import OWNERS, REFUSED, keys, role, say_in_one_turn, team

FORWARDED = [("forward", "olga", "use wipe 1 and use deploy 1")]
REPLIED = [("reply", "olga", "use deploy 1")]


@pytest.mark.any_database
@pytest.mark.parametrize("held", [FORWARDED, REPLIED], ids=["forwarded", "quoted"])
async def test_who_sends_a_message_counts_and_not_who_is_quoted(storage, held):
    async with team(storage) as bot:
        assert (await bot.ask("anna", "do that", *held)).startswith(REFUSED)
        of_a_guest = [(kind, "anna", text) for kind, _, text in held]
        assert await bot.ask("olga", "do that", *of_a_guest) == "got: deployed"
        assert bot.ran == [("deploy", 1)]


@pytest.mark.any_database
@pytest.mark.parametrize("said", [[("bob", "hm"), ("olga", "use deploy 1")], [("olga", "ok"), ("bob", "use deploy 1")]])
async def test_of_several_people_in_one_turn_each_must_have_the_role(storage, said):
    async with team(storage, is_started=False) as bot:
        assert (await say_in_one_turn(bot, *said)).startswith(REFUSED)
        await bot.ask("olga", role("bob", "deployer"))
        assert await bot.ask("bob", "use deploy 2") == "got: deployed"
        assert bot.ran == [("deploy", 2)]


async def test_several_people_who_have_the_right_by_different_roles_have_it_together(storage):
    async with team(storage, is_started=False) as bot:
        await storage.write(
            lambda connection: OWNERS.set_roles(connection, "messenger:bob", ["deployer"], "", storage.now())
        )
        assert await say_in_one_turn(bot, ("olga", "please"), ("bob", "use deploy 1")) == "got: deployed"


async def test_who_overheard_a_shared_turn_counts_as_well(storage):
    async with team(storage, is_started=False) as bot:
        assert (await say_in_one_turn(bot, ("olga", "use deploy 1"), ("bob", "~use deploy 1"))).startswith(REFUSED)


@pytest.mark.any_database
async def test_what_is_asked_again_needs_the_right_of_both(storage):
    async with team(storage) as bot:
        assert await bot.ask("olga", "use deploy 1") == "got: deployed"
        assert (await bot.ask("bob", "/retry")).startswith(REFUSED), "bob presses, with olga's words"
        assert await bot.ask("olga", "/retry") == "got: deployed", "they are still hers"
        assert (await bot.ask("bob", "use deploy 2")).startswith(REFUSED)
        assert (await bot.ask("olga", "/retry")).startswith(REFUSED), "olga presses, with bob's words"
        assert bot.ran == [("deploy", 1), ("deploy", 1)]


async def test_words_of_others_in_a_shared_turn_stay_theirs_when_it_is_asked_again(storage):
    async with team(storage, is_started=False) as bot:
        await say_in_one_turn(bot, ("bob", "use deploy 1"), ("olga", "hm"))
        await bot.ask("olga", "/retry")
        context = await AgentContext.get_or_create(storage, keys("1"))
        last = context.chat_history.last_user_message
        assert (last.author.id, last.text) == ("olga", "hm")
        assert [(each.author.id, each.text) for each in last.references] == [("bob", "use deploy 1")]


async def test_an_edit_before_the_answer_counts_as_who_edits(storage):
    async with team(storage, is_started=False) as bot:
        number = await bot.say("olga", "use deploy 1")
        await bot.say("bob", "use deploy 2", of=number)
        await bot.office.worker.start()
        assert (await bot.next(0)).startswith(REFUSED)
        assert bot.ran == []


async def test_a_turn_that_goes_on_in_another_process_is_asked_by_the_same_person(storage):
    waits, ran = asyncio.Event(), []

    async def forever(prompt):
        waits.set()
        await asyncio.Event().wait()

    async with team(storage, script=forever) as bot:
        await bot.say("bob", "use deploy 1")
        await waits.wait()
        await bot.office.worker.stop(grace_seconds=0)
        platform = bot.platform
    async with team(storage, ran=ran, messenger=platform) as bot:
        assert (await bot.next(0)).startswith(REFUSED)
    assert ran == []


async def test_a_message_that_was_deleted_since_is_of_nobody(storage):
    waits, ran = asyncio.Event(), []

    async def forever(prompt):
        if "use deploy" in prompt[-1]["content"]:
            waits.set()
            await asyncio.Event().wait()
        return "hm"

    async with team(storage, script=forever, is_started=False) as bot:
        for _ in range(MAX_OWN_TURNS - 1):
            await bot.say("olga", "hello")
        await bot.say("bob", "hm")
        await bot.say("olga", "use deploy 1")
        await bot.office.worker.start()
        await waits.wait()
        await bot.office.worker.stop(grace_seconds=0)
        await storage.write(lambda connection: connection.execute(delete(messages).where(messages.c.text == "hm")))
        platform = bot.platform
    async with team(storage, ran=ran, messenger=platform) as bot:
        assert (await bot.next(MAX_OWN_TURNS - 1)).startswith(REFUSED)
    assert ran == []
