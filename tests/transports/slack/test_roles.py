"""Tools that want a role, in a Slack channel: by who sends a message, and judged again when it runs."""

import pytest
from standins.slack_api import BOT_USER, SlackApi
from turns.ranks import obeying, rank_tools

from botservice.people.access import Access
from tests.transports.slack.test_approval import asked, elements

OWNERS = Access(owners=frozenset({"slack:T0001:U0BOB"}))
REFUSED = "got: Error: not allowed: "


async def says(api: SlackApi, text: str, user: str, answer: str) -> None:
    count = len(api.said("C0GENERAL"))
    api.person_says(f"<@{BOT_USER}> {text}", channel="C0GENERAL", user=user)
    await api.until(lambda: any(answer in each for each in api.said("C0GENERAL")[count:]))


@pytest.mark.parametrize("way", ["http", "socket"])
async def test_people_in_a_channel_have_the_tools_of_their_roles(api: SlackApi, bot_on_both, way: str) -> None:
    ran = []
    async with bot_on_both(api, obeying, tools=rank_tools(ran), access=OWNERS, way=way):
        await says(api, "use deploy 1", "U0ALICE", REFUSED)
        await says(api, "use deploy 2", "U0BOB", "got: deployed")
        await says(api, "!role slack:T0001:U0ALICE deployer", "U0ALICE", "Only an owner")
        await says(api, "!role slack:T0001:U0ALICE deployer", "U0BOB", "hat jetzt diese Rolle")
        await says(api, "use deploy 3", "U0ALICE", "got: deployed")
    assert ran == [("deploy", 2), ("deploy", 3)]


async def test_an_owner_who_allows_lends_no_role(api: SlackApi, bot_on) -> None:
    ran = []
    async with bot_on(api, obeying, tools=rank_tools(ran), access=OWNERS):
        await says(api, "!role slack:T0001:U0ALICE oncall", "U0BOB", "hat jetzt diese Rolle")
        api.person_says(f"<@{BOT_USER}> use wipe 1", channel="C0GENERAL")
        question = await asked(api, "C0GENERAL")
        await says(api, "!role slack:T0001:U0ALICE guest", "U0BOB", "hat jetzt diese Rolle")
        api.press(question, elements(question)["Allow"], user="U0BOB")
        await api.until(lambda: REFUSED in api.said("C0GENERAL")[-1])
    assert ran == []
