"""Every statement of installations in Slack: their tokens, their organisations, and what their workspaces refused."""

from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, bindparam, delete, insert, or_, select, update

from botservice.storage.statements import upserting
from botservice.storage.tables.platforms import slack_grids, slack_installations, slack_oauth_states, slack_refusals
from transports.slack.workspaces import StoredInstallation

_installed = slack_installations.c
_ORGANISATION = select(slack_grids.c.enterprise_id).where(slack_grids.c.team_id == bindparam("team"))
# A workspace's own installation counts before the one of its organisation.
_FIND_INSTALLATION = (
    select(*(_installed[each.name] for each in fields(StoredInstallation)))
    .where(
        or_(
            _installed.team_id == bindparam("team"),
            _installed.is_enterprise & (_installed.enterprise_id == bindparam("enterprise")),
            _installed.is_enterprise & _installed.enterprise_id.in_(_ORGANISATION),
        ),
        or_(_installed.enterprise_id == bindparam("enterprise"), bindparam("enterprise") == ""),
    )
    .order_by(_installed.team_id.desc())
    .limit(1)
)
_insert_installation = upserting(slack_installations, "enterprise_id", "team_id")
_insert_grid = upserting(slack_grids, "team_id")
_TEAMS = select(slack_grids.c.team_id).where(slack_grids.c.enterprise_id == bindparam("enterprise"))
_DELETE_INSTALLATION = delete(slack_installations).where(
    _installed.team_id == bindparam("team"),
    # An event may leave the organisation out.
    or_(_installed.enterprise_id == bindparam("enterprise"), bindparam("team") != ""),
)
_IS_KNOWN = (
    (_installed.enterprise_id == bindparam("enterprise"))
    & (_installed.team_id == bindparam("team"))
    & (_installed.refresh_token == bindparam("known"))
)
_LEASE_REFRESH = (
    update(slack_installations)
    .where(_IS_KNOWN, or_(_installed.refreshing_until.is_(None), _installed.refreshing_until < bindparam("now")))
    .values(refreshing_until=bindparam("until"))
    .returning(_installed.team_id)
)
_STORE_TOKENS = update(slack_installations).where(_IS_KNOWN).values(refreshing_until=None)


def find_installation(connection: Connection, enterprise_id: str, team_id: str) -> StoredInstallation | None:
    """Return the installation that counts for a workspace."""
    row = connection.execute(_FIND_INSTALLATION, {"enterprise": enterprise_id, "team": team_id}).one_or_none()
    return None if row is None else StoredInstallation(*row)


def store_installation(connection: Connection, new: StoredInstallation) -> None:
    """Store an installation in place of an earlier one, and forget what its workspaces have refused.

    They may have given the bot more scopes.
    """
    connection.execute(_insert_installation(connection), asdict(new) | {"refreshing_until": None})
    teams = connection.execute(_TEAMS, {"enterprise": new.enterprise_id}).scalars().all() if new.is_enterprise else ()
    for team in (new.team_id, *teams):
        connection.execute(_DELETE_REFUSALS, {"team": team})


def delete_installation(connection: Connection, enterprise_id: str, team_id: str) -> None:
    """Delete what is kept of an installation."""
    connection.execute(_DELETE_INSTALLATION, {"enterprise": enterprise_id, "team": team_id})


def store_grid(connection: Connection, team_id: str, enterprise_id: str) -> None:
    """Store which organisation a workspace belongs to."""
    connection.execute(_insert_grid(connection), {"team_id": team_id, "enterprise_id": enterprise_id})


def lease_refresh(connection: Connection, known: StoredInstallation, now: datetime, until: datetime) -> bool:
    """Take the right to refresh a token until a moment; return whether no other process has it."""
    return connection.execute(_LEASE_REFRESH, {**_names(known), "now": now, "until": until}).first() is not None


def store_tokens(
    connection: Connection, known: StoredInstallation, token: bytes, refresh_token: bytes, expires_at: datetime
) -> None:
    """Store the tokens that take the place of known ones."""
    values = {"token": token, "refresh_token": refresh_token, "token_expires_at": expires_at}
    connection.execute(_STORE_TOKENS.values(values), _names(known))


def _names(known: StoredInstallation) -> dict[str, Any]:
    return {"enterprise": known.enterprise_id, "team": known.team_id, "known": known.refresh_token}


_TAKE_STATE = (
    delete(slack_oauth_states)
    .where(slack_oauth_states.c.state == bindparam("state"))
    .returning(slack_oauth_states.c.expires_at)
)
_DELETE_OLD_STATES = delete(slack_oauth_states).where(slack_oauth_states.c.expires_at < bindparam("now"))


def add_oauth_state(connection: Connection, state: str, now: datetime, expires_at: datetime) -> None:
    """Store the state of an installation that begins, and delete those that have expired."""
    connection.execute(_DELETE_OLD_STATES, {"now": now})
    connection.execute(insert(slack_oauth_states), {"state": state, "expires_at": expires_at})


def take_oauth_state(connection: Connection, state: str) -> datetime | None:
    """Delete a state; return when it expires, or None if there was none."""
    return connection.execute(_TAKE_STATE, {"state": state}).scalar_one_or_none()


# What workspaces have refused

_LIST_REFUSED = select(slack_refusals.c.feature).where(
    slack_refusals.c.team_id == bindparam("team"), slack_refusals.c.refused_at > bindparam("since")
)
_insert_refusal = upserting(slack_refusals, "team_id", "feature")
_DELETE_REFUSALS = delete(slack_refusals).where(slack_refusals.c.team_id == bindparam("team"))


def list_refused(connection: Connection, team_id: str, since: datetime) -> set[str]:
    """Return the features that a workspace has refused since a moment."""
    return set(connection.execute(_LIST_REFUSED, {"team": team_id, "since": since}).scalars())


def store_refusal(connection: Connection, team_id: str, feature: str, now: datetime) -> None:
    """Store that a workspace refuses a feature."""
    row = {"team_id": team_id, "feature": feature, "refused_at": now}
    connection.execute(_insert_refusal(connection), row)
