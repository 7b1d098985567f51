"""Owners and admins of a workspace pause the bot in its channels; members and people of other workspaces do not."""

from typing import Any

import pytest
from standins.slack_api import SlackApi
from standins.slack_api.faults import Drop, Refuse, limited
from standins.slack_api.world import TEAM

from botservice.people.access import Access
from botservice.texts import in_language

OWNED = Access(owners=frozenset({f"slack:{TEAM}:U0OWNER"}))
PAUSED = in_language("pause.done", "en").replace("/resume", "!resume")
NOT_CHECKED = in_language("access.not_checked", "en")
REFUSED = in_language("access.for_administrators", "en")

pytestmark = pytest.mark.any_database


def as_member(api: SlackApi, **more: Any) -> None:
    api.world.users["U0ALICE"] |= {"is_admin": False, **more}


async def said(api: SlackApi, number: int, channel: str = "C0GENERAL") -> str:
    await api.until(lambda: len(api.said(channel)) >= number)
    return api.said(channel)[number - 1]


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        ({"is_admin": True}, PAUSED),
        ({"is_owner": True}, PAUSED),
        ({"team_id": "T0HOME", "is_admin": True, "enterprise_user": {"teams": [TEAM]}}, PAUSED),
        ({}, REFUSED),
        ({"is_admin": True, "team_id": "T0GUEST"}, REFUSED),
        ({"is_admin": True, "is_stranger": True}, REFUSED),
        ({"is_admin": "true"}, REFUSED),
    ],
    ids=["admin", "owner", "admin of an organisation", "member", "admin elsewhere", "stranger", "nonsense"],
)
async def test_who_may_pause_in_a_channel(api: SlackApi, bot_on_both, user: dict[str, Any], expected: str):
    as_member(api, **user)
    async with bot_on_both(api, access=OWNED):
        api.person_says("<@U0BOT> !pause", channel="C0GENERAL")
        assert await said(api, 1) == expected


async def test_an_admin_of_yesterday_is_refused_although_the_person_is_known(api: SlackApi, bot_on_both):
    as_member(api, is_admin=True)
    async with bot_on_both(api, access=OWNED):
        api.person_says("<@U0BOT> !listen on", channel="C0GENERAL")
        await said(api, 1)
        as_member(api)
        api.person_says("<@U0BOT> !pause", channel="C0GENERAL")
        assert await said(api, 2) == REFUSED


@pytest.mark.parametrize("fault", [Refuse("missing_scope"), Refuse("user_not_found"), limited(30), Drop()], ids=str)
async def test_nothing_changes_where_slack_does_not_say_so(api: SlackApi, bot_on_both, fault: Any):
    as_member(api, is_admin=True)
    async with bot_on_both(api, access=OWNED):
        api.order(fault, "users.info", times=None)
        api.person_says("<@U0BOT> !pause", channel="C0GENERAL")
        assert await said(api, 1) == NOT_CHECKED


async def test_in_a_direct_conversation_only_owners_pause(api: SlackApi, bot_on_both):
    as_member(api, is_admin=True)
    async with bot_on_both(api, access=OWNED):
        api.person_says("!pause", channel="D0ALICE")
        assert await said(api, 1, "D0ALICE") == in_language("access.for_owners", "en")
