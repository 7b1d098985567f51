"""Who somebody is: a name and a language, asked of Slack once in a while."""

import logging
import time
from dataclasses import dataclass

from transports.slack.client import SlackClient
from transports.slack.failures import SlackFailure
from transports.slack.inbound import field
from transports.slack.workspaces.workspaces import Workspace

logger = logging.getLogger(__name__)

_FRESH_SECONDS = 3600.0
_PAUSE_SECONDS = 30.0
_MAX_PEOPLE = 20_000


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody in a workspace.

    Attributes:
        account: What the person is called elsewhere in the service: ids of people are unique within their team.
        name: None where Slack does not say.
        language: Such as "de-DE".
        is_bot: Whether it is a program that writes.
    """

    id: str
    account: str
    name: str | None = None
    language: str | None = None
    is_bot: bool = False


class People:
    """Knows people by their ids."""

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._known: dict[tuple[str, str], tuple[Person, float]] = {}

    async def find(self, workspace: Workspace, user_id: str) -> Person:
        """Return a person; without a name where Slack does not give it."""
        key = workspace.team_id, user_id
        known = self._known.get(key)
        if known is not None and known[1] > time.monotonic():
            return known[0]
        try:
            answer = await self._client.ask(workspace.token, "users.info", user=user_id, include_locale="true")
        except SlackFailure as failure:
            logger.info("slack.person_unknown", extra={"reason": failure.code})
            person, fresh = known[0] if known is not None else Person(user_id, account_of(*key)), _PAUSE_SECONDS
        else:
            person, fresh = _read(key, field(answer, "user")), _FRESH_SECONDS
        if len(self._known) >= _MAX_PEOPLE:
            del self._known[next(iter(self._known))]
        self._known[key] = person, time.monotonic() + fresh
        return person


def account_of(team_id: str, user_id: str) -> str:
    """Return the id of a person's account: it says in which team."""
    return f"{team_id}:{user_id}"


def _read(key: tuple[str, str], user: object) -> Person:
    profile = field(user, "profile")
    names = (field(profile, "display_name"), field(profile, "real_name"), field(user, "real_name"), field(user, "name"))
    name = next((name for name in names if isinstance(name, str) and name.strip()), None)
    locale = field(user, "locale")
    language = locale if isinstance(locale, str) else None
    return Person(key[1], account_of(*key), name, language, field(user, "is_bot") is True)
