"""One person on several platforms: joined by a code, agreed to by both, undone by either."""

import asyncio
import re
from datetime import timedelta
from functools import partial

import pytest
from people.conversing import ALICE, ALICE_ON_SLACK, BOB, NOW, OTHER_ALICE, command, make_service, open_chat, values

from botservice import Storage, ToolCall
from botservice.commands.catalogue import Catalogue
from botservice.commands.links import LINK, UNLINK
from botservice.people.identities import MAX_GUESSES, LinkProblem, new_code
from botservice.people.queries import (
    accept_offer,
    confirm_offer,
    ensure_identity,
    find_identity,
    identities_of,
    offer_link,
    take_code,
)

COMMANDS = Catalogue([LINK, UNLINK])


async def link(storage, telegram, slack, giver=ALICE_ON_SLACK):
    """Link two accounts as their person does, by pressing buttons."""
    offered = await command(telegram, "/link", ALICE, COMMANDS)
    code = re.search(r"/link ([A-Z0-9]{4}-[A-Z0-9]{4})", offered.text)[1]
    taken = await command(slack, f"/link {code}", giver, COMMANDS)
    await command(slack, values(taken.buttons)[0], giver, COMMANDS)
    looked = await command(telegram, values(offered.buttons)[0], ALICE, COMMANDS)
    assert f"{giver.name} on Slack" in looked.text
    return await command(telegram, values(looked.buttons)[0], ALICE, COMMANDS)


async def persons(storage, *authors):
    def read(connection):
        found = [find_identity(connection, each) for each in authors]
        return [each and each.person_id for each in found]

    return await storage.read(read)


@pytest.mark.any_database
async def test_told_in_one_and_known_in_the_other_and_to_no_stranger_of_the_same_name(storage):
    telegram, slack = await open_chat(storage, "telegram-a", ALICE), await open_chat(storage, "slack-a", ALICE_ON_SLACK)
    stranger = await open_chat(storage, "slack-b", OTHER_ALICE)
    remember = ToolCall("c1", "remember", {"text": "Is vegetarian", "topic": "diet"})
    service, llm = make_service(storage, [remember, "noted", "a", "b", "c"])
    await service.prompt(telegram, "I am vegetarian", author=ALICE)
    await service.prompt(slack, "what can I eat?", author=ALICE_ON_SLACK)
    assert "vegetarian" not in str(llm.prompts[-1])
    done = await link(storage, telegram, slack)
    assert "You are also Alice S. on Slack (slack:T1/U1)" in done.text
    await service.prompt(slack, "what can I eat?", author=ALICE_ON_SLACK)
    assert "diet: Is vegetarian" in str(llm.prompts[-1])
    await service.prompt(stranger, "what can I eat?", author=OTHER_ALICE)
    assert "vegetarian" not in str(llm.prompts[-1])


async def test_unlinking_takes_apart_what_was_joined_with_what_came_through_each(storage):
    telegram, slack = await open_chat(storage, "telegram-a", ALICE), await open_chat(storage, "slack-a", ALICE_ON_SLACK)
    assert "isn’t linked" in (await command(telegram, "/unlink", ALICE, COMMANDS)).text
    await link(storage, telegram, slack)
    one, other = await persons(storage, ALICE, ALICE_ON_SLACK)
    assert one == other
    assert (
        "Your accounts: Alice on Telegram (telegram:1), Alice S. on Slack (slack:T1/U1)"
        in (await command(telegram, "/link", ALICE, COMMANDS)).text
    )
    assert "Alice on Telegram" in (await command(slack, "/unlink", ALICE_ON_SLACK, COMMANDS)).text
    one, other = await persons(storage, ALICE, ALICE_ON_SLACK)
    assert one != other


@pytest.mark.any_database
async def test_nothing_is_joined_before_both_agree(storage):
    telegram, slack = await open_chat(storage, "telegram-a", ALICE), await open_chat(storage, "slack-a", ALICE_ON_SLACK)
    offered = await command(telegram, "/link", ALICE, COMMANDS)
    code = re.search(r"/link (\S{9})", offered.text)[1]
    taken = await command(slack, f"/link {code.lower().replace('-', ' ')}", ALICE_ON_SLACK, COMMANDS)
    number = values(taken.buttons)[0].rpartition(" ")[2]
    await command(telegram, f"/link confirm {number}", ALICE, COMMANDS)
    assert "hasn’t been sent" in (await command(telegram, "/link confirm", ALICE, COMMANDS)).text
    one, other = await persons(storage, ALICE, ALICE_ON_SLACK)
    assert one != other
    # No other person agrees or confirms in their place, whatever number they send.
    bobs = await open_chat(storage, "telegram-b", BOB)
    await command(bobs, f"/link accept {number}", BOB, COMMANDS)
    await command(bobs, f"/link confirm {number}", BOB, COMMANDS)
    assert "hasn’t been sent" in (await command(telegram, "/link confirm", ALICE, COMMANDS)).text


async def test_a_code_works_once_and_for_ten_minutes(storage):
    def run(connection):
        alice, slack, bob = (ensure_identity(connection, each, NOW) for each in (ALICE, ALICE_ON_SLACK, BOB))
        offer_link(connection, alice, "AAAA-BBBB", NOW)
        assert take_code(connection, alice, "AAAA-BBBB", NOW) is LinkProblem.UNKNOWN
        late = NOW + timedelta(minutes=10)
        assert take_code(connection, slack, "AAAA-BBBB", late) is LinkProblem.UNKNOWN
        offer = take_code(connection, slack, "AAAA-BBBB", NOW)
        assert take_code(connection, bob, "AAAA-BBBB", NOW) is LinkProblem.UNKNOWN
        assert accept_offer(connection, slack, offer.id, NOW)
        assert confirm_offer(connection, alice, offer.id, late) is None
        assert confirm_offer(connection, alice, offer.id, NOW).id == slack.id
        assert confirm_offer(connection, alice, offer.id, NOW) is None
        alice, slack = find_identity(connection, ALICE), find_identity(connection, ALICE_ON_SLACK)
        offer_link(connection, alice, "CCCC-DDDD", NOW)
        assert take_code(connection, slack, "CCCC-DDDD", NOW) is LinkProblem.SAME
        return [each.platform for each in identities_of(connection, alice.person_id)]

    assert await storage.write(run) == ["telegram", "slack"]


async def test_guessing_is_stopped_before_a_right_code_would_be_taken(storage):
    def run(connection):
        alice, bob = (ensure_identity(connection, each, NOW) for each in (ALICE, BOB))
        offer_link(connection, alice, "AAAA-BBBB", NOW)
        for number in range(MAX_GUESSES):
            assert take_code(connection, bob, f"AAAA-BBB{number}", NOW) is LinkProblem.UNKNOWN
        assert take_code(connection, bob, "AAAA-BBBB", NOW) is LinkProblem.GUESSING
        soon = NOW + timedelta(minutes=61)
        offer_link(connection, alice, "AAAA-BBBB", soon)
        assert not isinstance(take_code(connection, bob, "AAAA-BBBB", soon), LinkProblem)

    await storage.write(run)


async def test_guesses_on_several_replicas_at_once_are_counted_one_by_one(postgres_url, postgres_storage):
    bob = await postgres_storage.write(lambda connection: ensure_identity(connection, BOB, NOW))
    async with Storage.open(postgres_url) as other:
        guesses = [
            (postgres_storage, other)[number % 2].write(
                partial(take_code, giver=bob, code=f"AAAA-BB{number:02}", now=NOW), sort_key=(number,)
            )
            for number in range(MAX_GUESSES * 3)
        ]
        found = await asyncio.gather(*guesses)
    assert found.count(LinkProblem.UNKNOWN) == MAX_GUESSES
    assert found.count(LinkProblem.GUESSING) == MAX_GUESSES * 2


async def test_a_code_that_two_give_on_two_replicas_at_once_is_good_for_one_of_them(postgres_url, postgres_storage):
    everybody = (ALICE, ALICE_ON_SLACK, BOB)
    met = await postgres_storage.write(
        lambda connection: [ensure_identity(connection, each, NOW) for each in everybody]
    )
    await postgres_storage.write(partial(offer_link, asker=met[0], code="AAAA-BBBB", now=NOW))
    async with Storage.open(postgres_url) as other:
        given = [
            (postgres_storage, other)[number % 2].write(
                partial(take_code, giver=met[1 + number % 2], code="AAAA-BBBB", now=NOW), sort_key=(number,)
            )
            for number in range(4)
        ]
        found = await asyncio.gather(*given)
    assert len({each.giver.id for each in found if not isinstance(each, LinkProblem)}) == 1
    assert found.count(LinkProblem.UNKNOWN) == 2


async def test_a_code_is_kept_as_its_digest_alone(storage):
    telegram = await open_chat(storage, "telegram-a", ALICE)
    offered = await command(telegram, "/link", ALICE, COMMANDS)
    code = re.search(r"/link (\S{9})", offered.text)[1]

    def read(connection):
        return str(connection.exec_driver_sql("SELECT * FROM link_codes").all())

    assert code not in await storage.read(read)
    assert code.replace("-", "") not in await storage.read(read)


@pytest.mark.any_database
@pytest.mark.parametrize("text", ["/link", "/link AAAA-BBBB", "/unlink"])
async def test_where_others_listen_nothing_is_linked(storage, text):
    group = await open_chat(storage, "telegram-g", ALICE, BOB)
    answer = await command(group, text, ALICE, COMMANDS, is_private=False)
    assert "private chat" in answer.text
    assert answer.apply is None


def test_codes_have_forty_bits():
    codes = {new_code() for _ in range(200)}
    assert len(codes) == 200
    assert all(re.fullmatch(r"[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}", each) for each in codes)
