"""Tools that want a role, in a Telegram group: by who sends a message, and by who writes as the group."""

import time

import pytest
from standins.bot_api import Person
from turns.ranks import obeying, rank_tools

from botservice.people.access import Access

GROUP = -1001000000001
OLGA, ANNA = Person(1003, first_name="Olga"), Person(1001, first_name="Anna")
OWNERS = Access(owners=frozenset({"telegram:1003"}))
REFUSED = "got: Error: not allowed: "


def origin(user):
    sender = {"id": user.id, "is_bot": False, "first_name": user.first_name}
    return {"forward_origin": {"type": "user", "date": int(time.time()), "sender_user": sender}}


@pytest.mark.parametrize("webhook", [False, True])
async def test_the_sender_counts_also_of_forwards_and_replies(api, bot_on_both, webhook) -> None:
    ran = []
    api.add_group(GROUP)
    async with bot_on_both(api, obeying, tools=rank_tools(ran), access=OWNERS, webhook=webhook):
        said = api.person_says(f"@{api.username} use deploy 1", chat_id=GROUP, user=ANNA)
        refused = await api.message(GROUP, REFUSED)
        api.person_says("/role deployer", chat_id=GROUP, user=ANNA, reply_to=said.message_id)
        await api.message(GROUP, "Only an owner can do that")
        api.person_says(f"@{api.username} do that", chat_id=GROUP, user=OLGA, reply_to=said.message_id)
        await api.message(GROUP, "got: deployed", after=refused.message_id)
        asked = api.person_says("use deploy 2", chat_id=GROUP, user=OLGA)
        reply = api.person_says(f"@{api.username} do that", chat_id=GROUP, user=ANNA, reply_to=asked.message_id)
        await api.message(GROUP, REFUSED, after=reply.message_id)
        role = api.person_says("/role deployer", chat_id=GROUP, user=OLGA, reply_to=said.message_id)
        await api.message(GROUP, "telegram:1001 now has this role", after=role.message_id)
        again = api.person_says(f"@{api.username} use deploy 3", chat_id=GROUP, user=ANNA)
        await api.message(GROUP, "got: deployed", after=again.message_id)
    assert ran == [("deploy", 1), ("deploy", 3)]


async def test_a_forward_to_the_bot_is_of_who_forwards_it(api, bot_on) -> None:
    ran = []
    api.add_private_chat(OLGA.id)
    async with bot_on(api, obeying, tools=rank_tools(ran), access=OWNERS):
        api.person_says("use deploy 1", chat_id=42, extra=origin(OLGA))
        await api.message(42, REFUSED)
        api.person_says("use deploy 2", chat_id=OLGA.id, user=OLGA, extra=origin(ANNA))
        await api.message(OLGA.id, "got: deployed")
    assert ran == [("deploy", 2)]


async def test_who_writes_as_the_group_is_a_guest_and_gets_no_role(api, bot_on) -> None:
    ran = []
    api.add_group(GROUP)
    anonymous = {"sender_chat": {"id": GROUP, "type": "supergroup", "title": "Team"}}
    async with bot_on(api, obeying, tools=rank_tools(ran), access=OWNERS):
        said = api.person_says(f"@{api.username} use read 1", chat_id=GROUP, user=OLGA, extra=anonymous)
        await api.message(GROUP, REFUSED)
        role = api.person_says("/role deployer", chat_id=GROUP, user=OLGA, reply_to=said.message_id)
        await api.message(GROUP, "Who gets which role?", after=role.message_id)
    assert ran == []


async def test_a_reply_to_what_somebody_passes_on_gives_its_first_author_no_role(api, bot_on) -> None:
    api.add_group(GROUP)
    elsewhere = {"external_reply": {"origin": origin(ANNA)["forward_origin"]}}
    async with bot_on(api, obeying, tools=rank_tools([]), access=OWNERS):
        said = api.person_says("hello", chat_id=GROUP, user=Person(1004, first_name="Eve"), extra=origin(ANNA))
        role = api.person_says("/role deployer", chat_id=GROUP, user=OLGA, reply_to=said.message_id)
        answer = await api.message(GROUP, "Who gets which role?", after=role.message_id)
        role = api.person_says("/role deployer", chat_id=GROUP, user=OLGA, extra=elsewhere)
        await api.message(GROUP, "Who gets which role?", after=max(role.message_id, answer.message_id))


async def test_a_forwarded_or_quoted_command_gives_nobody_a_role(api, bot_on) -> None:
    api.add_private_chat(OLGA.id)
    async with bot_on(api, obeying, tools=rank_tools([]), access=OWNERS):
        api.person_says("/role telegram:1001 owner", chat_id=OLGA.id, user=OLGA, extra=origin(ANNA))
        await api.message(OLGA.id, "re: ")
        said = api.person_says("/roles", chat_id=OLGA.id, user=OLGA)
        assert "1001" not in (await api.message(OLGA.id, "owner", after=said.message_id)).text
