"""Who is let in on Slack: a channel by whoever invited the bot, a person by the ids of their team and their own."""

from typing import Any

from standins.slack_api import BOT_USER, TEAM, SlackApi

from botservice import Storage
from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.texts import LANGUAGES, in_language
from transports.slack.answer_messages import as_typed

MENTION = f"<@{BOT_USER}>"
CHANNEL = "C0GENERAL"


def moved(api: SlackApi, kind: str, inviter: str | None = None, user: str = BOT_USER) -> None:
    """Have a person come into the channel, or leave it."""
    event = {"type": kind, "user": user, "channel": CHANNEL, "channel_type": "C", "team": TEAM}
    api.send_event(event | ({"inviter": inviter} if inviter else {}))


async def test_a_channel_is_answered_when_a_member_has_invited_the_bot(
    api: SlackApi, bot_on: Any, sqlite_storage: Storage
) -> None:
    access = Access(AccessMode.ALLOW, owners=frozenset({f"slack:{TEAM}:U0ALICE"}))
    async with bot_on(api, access=access):
        moved(api, "member_joined_channel", "U0BOB")
        moved(api, "member_joined_channel", "U0ALICE", user="U0BOB")  # a person, not the bot
        await api.until(lambda: len(api.events.tries) == 2)
        api.person_says(f"{MENTION} hi", channel=CHANNEL, user="U0BOB")
        await api.until(lambda: api.said(CHANNEL))
        assert api.said(CHANNEL)[0] in {as_typed(in_language("access.group", language)) for language in LANGUAGES}
        moved(api, "member_left_channel")
        await api.until(lambda: len(api.events.tries) >= 5)
        moved(api, "member_joined_channel", "U0ALICE")
        await api.until(lambda: len(api.events.tries) >= 6)
        api.person_says(f"{MENTION} hi again", channel=CHANNEL, user="U0BOB")
        await api.until(lambda: len(api.said(CHANNEL)) == 2)
        assert api.said(CHANNEL)[1] == "You said: hi again"


async def test_a_stranger_is_told_who_they_are(api: SlackApi, bot_on: Any) -> None:
    access = Access(AccessMode.ALLOW, allowed=frozenset({"slack:T0001:U0ALICE"}))
    async with bot_on(api, access=access):
        api.person_says("hello")
        await api.until(api.said)
        assert api.said() == ["You said: hello"]
    async with bot_on(api, access=Access(AccessMode.ALLOW)):
        api.person_says("hello again")
        await api.until(lambda: len(api.said()) == 2)
        assert api.said()[1] in {
            in_language("access.refused", language, name="slack:T0001:U0ALICE") for language in LANGUAGES
        }


async def test_a_command_that_an_app_posts_in_a_persons_name_is_text(api: SlackApi, bot_on: Any) -> None:
    owner = f"slack:{TEAM}:U0ALICE"
    async with bot_on(api, access=Access(AccessMode.ALLOW, owners=frozenset({owner}))):
        for number, mark in enumerate(({"app_id": "A1"}, {"bot_profile": {"id": "B1"}}, {"metadata": {}}), 1):
            api.person_says("!approve slack:T0001:U0BOB owner", **mark)
            await api.until(lambda number=number: len(api.said()) == number)
        api.person_says("!access")
        await api.until(lambda: len(api.said()) == 4)
        assert api.said()[:3] == ["You said: !approve slack:T0001:U0BOB owner"] * 3
        assert "U0BOB" not in api.said()[3]


async def test_a_name_in_the_next_line_of_a_command_is_let_in_and_named(api: SlackApi, bot_on: Any) -> None:
    async with bot_on(api, access=Access(AccessMode.ALLOW, owners=frozenset({f"slack:{TEAM}:U0ALICE"}))):
        api.person_says("!approve\nslack:T0001:U0BOB")
        await api.until(api.said)
        assert "slack:T0001:U0BOB" in api.said()[0]
