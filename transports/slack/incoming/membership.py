"""Who has brought the bot into a channel: access may depend on that."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botservice.messages import Author
from botservice.people.names import chat_name, person_name
from transports.slack.inbound import bots_of, field, team_of, word
from transports.slack.workspaces.people import account_of


@dataclass(frozen=True, slots=True)
class Membership:
    """What the bot is in a channel from now on.

    Attributes:
        chat: The channel, as owners call it.
        person: Who invited the bot; None where Slack does not say.
    """

    chat: str
    is_there: bool
    person: str | None = None


def membership_of(body: Mapping[str, Any], known_bot: str | None) -> Membership | None:
    """Return what an event makes of the bot in a channel; None where it is about somebody else."""
    event = field(body, "event")
    team, channel, user = team_of(body), word(field(event, "channel")), word(field(event, "user"))
    if team is None or channel is None or user is None or user not in bots_of(body) | {known_bot}:
        return None
    chat = chat_name({"transport": "slack", "team_id": team, "channel_id": channel})
    if field(event, "type") != "member_joined_channel":
        return Membership(chat, is_there=False)
    inviter = word(field(event, "inviter"))
    return Membership(
        chat, is_there=True, person=person_name(Author("slack", account_of(team, inviter))) if inviter else None
    )
