"""Every statement of the Slack transport: its own tables, and what it looks up in those of conversations."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, distinct, exists, func, insert, or_, select, update

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context, write_feedback
from botservice.core.messages import Author
from botservice.core.states import EventKind
from botservice.people.access_queries import read_names, read_roles
from botservice.people.access_values import AccessRole
from botservice.storage.statements import upserting
from botservice.storage.tables.conditions import (
    DELIVERY_IS_ATTEMPTED,
    DELIVERY_IS_OWED,
    EVENT_IS_CHANGE,
    EVENT_IS_EXTERNAL,
    MESSAGE_IS_OF_A_PERSON,
    TURN_IS_ASKED,
)
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, turns
from botservice.storage.tables.people import gate_decisions
from botservice.storage.tables.services import (
    feedback,
    slack_grids,
    slack_installations,
    slack_oauth_states,
    slack_refusals,
    slack_titles,
)
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.delivery_queries import find_offered, has_arrived, owes_buttons
from transports.slack.inbound_events import SlackMessage, stored
from transports.slack.workspaces import StoredInstallation

_PLATFORM: Final = "slack"
_SAID_BY_PERSON = (messages.c.author_platform == _PLATFORM) & (messages.c.author_id == bindparam("person"))
_RECENT_DELIVERIES: Final = 100_000  # so far back an answer is looked for: nothing finds one by its timestamp alone


_LAST_POSITION = select(contexts.c.last_position).where(contexts.c.key_hash == bindparam("key_hash"))


def takes_part(connection: Connection, keys: ContextKeys, *, may_be_empty: bool) -> bool:
    """Return whether there is a conversation; one without a message may be only where a pause of a channel stands."""
    last = connection.execute(_LAST_POSITION, {"key_hash": keys.digest}).scalar_one_or_none()
    return last is not None and (may_be_empty or last > 0)


# Titles of sessions

_IS_SESSION = (slack_titles.c.context_id == bindparam("context")) & (slack_titles.c.thread_ts == bindparam("thread"))
_HAS_TITLE = select(slack_titles.c.titled_at).where(_IS_SESSION)
_replace_title = upserting(slack_titles, "context_id", "thread_ts")


def has_title(connection: Connection, keys: ContextKeys, thread_ts: str) -> bool:
    """Return whether a session has a title."""
    sought = {"context": find_context(connection, keys), "thread": thread_ts}
    return connection.execute(_HAS_TITLE, sought).first() is not None


def mark_titled(connection: Connection, keys: ContextKeys, thread_ts: str, now: datetime) -> None:
    """Store that a session has a title, of the bot or of a person."""
    context_id = find_context(connection, keys)
    if context_id is not None:
        row = {"context_id": context_id, "thread_ts": thread_ts, "titled_at": now}
        connection.execute(_replace_title(connection), row)


# What was asked

_ASKED = select(events.c.raw, events.c.context_id).where(events.c.turn_id == bindparam("turn")).order_by(events.c.id)
_LAST_CHANGE = (
    select(events.c.raw, events.c.kind)
    .where(EVENT_IS_EXTERNAL, events.c.context_id == bindparam("context"), events.c.external_id == bindparam("ts"))
    .where(EVENT_IS_CHANGE)
    .order_by(events.c.order_key.desc())
    .limit(1)
)


def list_questions(connection: Connection, turn_id: int) -> list[tuple[SlackMessage | None, bool]]:
    """Return the messages that a turn answers, as they are now, and whether each was deleted.

    A press or a command is None.
    """
    found: list[tuple[SlackMessage | None, bool]] = []
    for raw, context_id in connection.execute(_ASKED, {"turn": turn_id}).all():
        message = stored(raw or b"").message
        sought = {"context": context_id, "ts": None if message is None else message.ts}
        changed = None if message is None else connection.execute(_LAST_CHANGE, sought).one_or_none()
        is_deleted = changed is not None and changed.kind == EventKind.DELETE
        found.append((message if changed is None or is_deleted else stored(changed.raw or b"").message, is_deleted))
    return found


def find_askers(connection: Connection, context_keys: Mapping[str, str], ts: str) -> frozenset[str] | None:
    """Return the users whom a message answers, none where it is not kept; None while that is not known."""
    context_id = find_context(connection, ContextKeys.of(context_keys))
    if context_id is None:
        return frozenset()
    is_late = owes_buttons(connection, context_id)  # asked first: what arrives between the two is found by the second
    offered = find_offered(connection, context_id, _PLATFORM, ts)
    if offered is None:
        # What is old or forgotten has no buttons here any more.
        is_known = has_arrived(connection, context_id, _PLATFORM, ts)
        return None if is_late and not is_known else frozenset()
    askers = [stored(each).asker for each in offered.asked]
    return frozenset(each for each in askers if each is not None)


# What was said

# A person has addressed the bot in a conversation if it answered one of their turns there, or will.
_HAS_ADDRESSED = (
    select(messages.c.id)
    .join(events, events.c.id == messages.c.event_id)
    .join(turns, turns.c.id == events.c.turn_id)
    .where(
        messages.c.context_id == bindparam("context"),
        _SAID_BY_PERSON,
        TURN_IS_ASKED,
        ~exists().where(gate_decisions.c.turn_id == turns.c.id),  # nobody asked for its answer
    )
    .limit(1)
)
_HISTORY = select(messages.c.external_id).where(messages.c.context_id == bindparam("context"))
_BEFORE_EVENT = or_(messages.c.event_id.is_(None), messages.c.event_id < bindparam("event"))
_SAID_BY_BOT = (
    select(messages.c.text)
    .select_from(deliveries.outerjoin(messages, messages.c.answers_turn_id == deliveries.c.turn_id))
    .where(deliveries.c.context_id == bindparam("context"), deliveries.c.external_id == bindparam("ts"))
)
# In the conversation of these two alone, in their own words: nothing that a file or a quotation says.
_OWN_WORDS = (
    select(messages.c.text, messages.c.attachments, messages.c.said_by_others)
    .where(
        messages.c.context_id == bindparam("context"),
        MESSAGE_IS_OF_A_PERSON,
        _SAID_BY_PERSON,
        messages.c.own_text.is_(None),
    )
    .order_by(messages.c.position.desc())
    .limit(50)
)
_COUNTS = select(
    func.count(messages.c.id), func.count(distinct(messages.c.context_id)), func.min(messages.c.created_at)
).where(_SAID_BY_PERSON)
_PLACES = (
    select(contexts.c.context_keys)
    .join(messages, messages.c.context_id == contexts.c.id)
    .where(_SAID_BY_PERSON)
    .distinct()
    .limit(1000)
)


def has_addressed_bot(connection: Connection, keys: ContextKeys, account: str) -> bool:
    """Return whether a person has spoken to the bot in a conversation."""
    context_id = find_context(connection, keys)
    sought = {"context": context_id, "person": account}
    return context_id is not None and connection.execute(_HAS_ADDRESSED, sought).first() is not None


def list_kept_since(connection: Connection, keys: ContextKeys, event_id: int) -> set[str] | None:
    """Return the timestamps of a thread's kept messages, or None if any of them came before an event."""
    sought = {"context": find_context(connection, keys), "event": event_id}
    if connection.execute(_HISTORY.where(_BEFORE_EVENT).limit(1), sought).first() is not None:
        return None
    return set(connection.execute(_HISTORY, sought).scalars())


def list_said_by_bot(connection: Connection, keys: ContextKeys, ts: str) -> list[str | None]:
    """Return the texts of the answer that a message belongs to; None where the answer is not kept."""
    return list(connection.execute(_SAID_BY_BOT, {"context": find_context(connection, keys), "ts": ts}).scalars())


def list_own_words(connection: Connection, keys: ContextKeys, account: str) -> list[str] | None:
    """Return what a person said last in a conversation, newest first; None where they are blocked."""
    roles, _ = read_roles(connection, read_names(connection, f"{_PLATFORM}:{account}"), "")
    if AccessRole.BLOCKED in roles:
        return None
    rows = connection.execute(_OWN_WORDS, {"context": find_context(connection, keys), "person": account})
    return [" ".join(row.text.split()) for row in rows if not row.attachments and row.said_by_others is not None]


@dataclass(frozen=True, slots=True)
class SlackUsage:
    """How much a person has said to the bot, since when, and the keys of the conversations."""

    messages: int
    conversations: int
    since: datetime
    places: list[Mapping[str, str]]


def read_usage(connection: Connection, account: str) -> SlackUsage:
    """Return how much a person has said to the bot, and where."""
    count, conversations, since = connection.execute(_COUNTS, {"person": account}).one()
    return SlackUsage(count, conversations, since, list(connection.execute(_PLACES, {"person": account}).scalars()))


# What people think of answers

_KEYS_OF_TURN = (
    select(contexts.c.context_keys)
    .join(turns, turns.c.context_id == contexts.c.id)
    .where(turns.c.id == bindparam("turn"))
)
_ON_ITS_WAY = (
    select(deliveries.c.id).where(DELIVERY_IS_OWED, deliveries.c.transport == _PLATFORM, DELIVERY_IS_ATTEMPTED).limit(1)
)
_TURNS_OF_ANSWERS = (
    select(deliveries.c.turn_id, contexts.c.context_keys)
    .join(contexts, contexts.c.id == deliveries.c.context_id)
    .where(
        deliveries.c.id > select(func.max(deliveries.c.id)).scalar_subquery() - _RECENT_DELIVERIES,
        deliveries.c.external_id == bindparam("ts"),
        deliveries.c.transport == _PLATFORM,
        exists().where(messages.c.answers_turn_id == deliveries.c.turn_id),
        ~exists().where(pending_calls.c.delivery_id == deliveries.c.id),
    )
)
_VERDICT = select(feedback.c.verdict).where(
    feedback.c.turn_id == bindparam("turn"),
    feedback.c.platform == _PLATFORM,
    feedback.c.person_id == bindparam("person"),
)


def is_any_on_its_way(connection: Connection) -> bool:
    """Return whether any message to Slack is on its way at this moment."""
    return connection.execute(_ON_ITS_WAY).first() is not None


def find_answered_turn(connection: Connection, message: tuple[str, str, str]) -> tuple[int, Mapping[str, str]] | None:
    """Return the turn that a message answers, and what its conversation is called.

    Args:
        message: Its team, its channel and its timestamp.
    """
    *place, ts = message
    for turn_id, keys in connection.execute(_TURNS_OF_ANSWERS, {"ts": ts}):
        if [keys.get("team_id"), keys.get("channel_id")] == place:
            return turn_id, keys
    return None


def store_verdict(
    connection: Connection, turn_id: int, place: tuple[str, str], author: Author, verdict: str, now: datetime
) -> bool:
    """Store a verdict on a turn of a team's channel; return whether the turn is there and the author may give one."""
    keys: Any = connection.execute(_KEYS_OF_TURN, {"turn": turn_id}).scalar_one_or_none()
    is_there = keys is not None and (keys.get("team_id"), keys.get("channel_id")) == place
    return is_there and write_feedback(connection, turn_id, author, verdict, now)


def store_reaction(
    connection: Connection,
    message: tuple[str, str, str],
    author: Author,
    verdict: str,
    now: datetime,
    *,
    is_there: bool,
) -> bool:
    """Store what a reaction says of the turn that a message answers, or delete it where it was taken away.

    Return whether it was an answer, and the verdict that was taken away stood.
    """
    found = find_answered_turn(connection, message)
    if found is None or is_there:
        return found is not None and write_feedback(connection, found[0], author, verdict, now)
    stands = connection.execute(_VERDICT, {"turn": found[0], "person": author.id}).scalar_one_or_none()
    return stands == verdict and write_feedback(connection, found[0], author, None, now)


# Installations: a workspace's own counts before the one of its organisation

_installed = slack_installations.c
_ORGANISATION = select(slack_grids.c.enterprise_id).where(slack_grids.c.team_id == bindparam("team"))
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


def find_installation(connection: Connection, enterprise_id: str, team_id: str) -> StoredInstallation | None:
    """Return the installation that counts for a workspace."""
    row = connection.execute(_FIND_INSTALLATION, {"enterprise": enterprise_id, "team": team_id}).one_or_none()
    return None if row is None else StoredInstallation(*row)


def store_installation(connection: Connection, new: StoredInstallation) -> None:
    """Store an installation in place of an earlier one, and forget what its workspaces have refused.

    They may have given the bot more scopes.
    """
    connection.execute(_insert_installation(connection), asdict(new) | {"refreshing_until": None})
    is_asked = slack_refusals.c.team_id == new.team_id
    if new.is_enterprise:
        teams = select(slack_grids.c.team_id).where(slack_grids.c.enterprise_id == new.enterprise_id)
        is_asked |= slack_refusals.c.team_id.in_(teams)
    connection.execute(delete(slack_refusals).where(is_asked))


def delete_installation(connection: Connection, enterprise_id: str, team_id: str) -> None:
    """Delete what is kept of an installation."""
    gone = delete(slack_installations).where(_installed.team_id == team_id)
    # An event may leave the organisation out.
    connection.execute(gone if team_id else gone.where(_installed.enterprise_id == enterprise_id))


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
    connection.execute(
        update(slack_installations).where(_IS_KNOWN).values(**values, refreshing_until=None), _names(known)
    )


def _names(known: StoredInstallation) -> dict[str, Any]:
    return {"enterprise": known.enterprise_id, "team": known.team_id, "known": known.refresh_token}


def add_oauth_state(connection: Connection, state: str, now: datetime, expires_at: datetime) -> None:
    """Store the state of an installation that begins, and delete those that have expired."""
    connection.execute(delete(slack_oauth_states).where(slack_oauth_states.c.expires_at < now))
    connection.execute(insert(slack_oauth_states), {"state": state, "expires_at": expires_at})


def take_oauth_state(connection: Connection, state: str) -> datetime | None:
    """Delete a state; return when it expires, or None if there was none."""
    taken = delete(slack_oauth_states).where(slack_oauth_states.c.state == state)
    return connection.execute(taken.returning(slack_oauth_states.c.expires_at)).scalar_one_or_none()


_insert_refusal = upserting(slack_refusals, "team_id", "feature")


def list_refused(connection: Connection, team_id: str, since: datetime) -> set[str]:
    """Return the features that a workspace has refused since a moment."""
    refused = select(slack_refusals.c.feature).where(slack_refusals.c.team_id == team_id)
    return set(connection.execute(refused.where(slack_refusals.c.refused_at > since)).scalars())


def store_refusal(connection: Connection, team_id: str, feature: str, now: datetime) -> None:
    """Store that a workspace refuses a feature."""
    connection.execute(_insert_refusal(connection), {"team_id": team_id, "feature": feature, "refused_at": now})
