"""Every statement of what models refuse: parts of a conversation, and forms of requests, for all processes."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import bindparam, delete, select, update

from botservice.conversation.prompt_exclusions import NOTHING_KEPT_OUT, KeptOut, ModelRefusal
from botservice.core.messages import Author, storable
from botservice.history.note_queries import ARE_SHOWN
from botservice.llm.server_limits import REMEMBERED_SECONDS
from botservice.people.fact_queries import ARE_KNOWN
from botservice.storage.database import Connection, Row
from botservice.storage.statements import upserting
from botservice.storage.tables.services import model_refusals, refused_messages

_LASTS: Final = timedelta(days=1)
_IS_OF: Final = (refused_messages.c.context_id == bindparam("context")) & (
    refused_messages.c.model == bindparam("of_model")
)
_KEPT_OUT: Final = select(refused_messages.c.kept_out, refused_messages.c.is_told).where(
    _IS_OF, refused_messages.c.expires_at > bindparam("now")
)
# Most chats have nothing of all this: one question for all of it.
_KNOWN: Final = select(ARE_SHOWN.label("notes"), ARE_KNOWN.label("facts"), _KEPT_OUT.exists().label("kept_out"))
_TELL: Final = update(refused_messages).where(_IS_OF).values(is_told=True)
_upsert: Final = upserting(refused_messages, "context_id", "model")


def find_known(
    connection: Connection, context_id: int, author: Author | None, model: str, now: datetime
) -> Row[*tuple[Any, ...]]:
    """Return whether there are notes and facts for a prompt, and whether a model refuses anything of its context."""
    platform, platform_id = ("", "") if author is None else (author.platform or "", author.id or "")
    account = {"platform": storable(platform), "platform_id": storable(platform_id)}
    return connection.execute(_KNOWN, {"context": context_id, "of_model": model, "now": now, **account}).one()


def read_kept_out(connection: Connection, context_id: int, model: str, now: datetime) -> KeptOut:
    """Return what the prompts of a context for a model go without."""
    row = connection.execute(_KEPT_OUT, {"context": context_id, "of_model": model, "now": now}).one_or_none()
    if row is None:
        return NOTHING_KEPT_OUT
    kept: Mapping[str, Any] = row.kept_out
    messages, files_of = frozenset(kept["messages"]), frozenset(kept["files_of"])
    return KeptOut(kept["up_to"], messages, files_of, kept["step_pictures"], is_told=row.is_told)


def write_kept_out(connection: Connection, context_id: int, model: str, kept_out: KeptOut, now: datetime) -> None:
    """Store what the prompts of a context for a model go without from now on."""
    kept = {
        "up_to": kept_out.up_to,
        "messages": sorted(kept_out.messages),
        "files_of": sorted(kept_out.files_of),
        "step_pictures": kept_out.step_pictures,
    }
    row = {"context_id": context_id, "model": model, "kept_out": kept, "is_told": kept_out.is_told}
    connection.execute(_upsert(connection), {**row, "expires_at": now + _LASTS})


def note_told(connection: Connection, context_id: int, model: str) -> None:
    """Take note that the person knows that something is left out."""
    connection.execute(_TELL, {"context": context_id, "of_model": model})


_REFUSAL_LASTS: Final = timedelta(seconds=REMEMBERED_SECONDS)
_KNOWN_REFUSALS: Final = (
    select(model_refusals)
    .where(model_refusals.c.expires_at > bindparam("now"))
    .order_by(model_refusals.c.server, model_refusals.c.model, model_refusals.c.learned_at, model_refusals.c.what)
)
_EXPIRED_REFUSALS: Final = delete(model_refusals).where(model_refusals.c.expires_at <= bindparam("now"))
_upsert_refusal: Final = upserting(model_refusals, "server", "model", "what")


def list_refusals(connection: Connection, now: datetime) -> list[ModelRefusal]:
    """Return what is known, by server and model."""
    return [ModelRefusal(**row._asdict()) for row in connection.execute(_KNOWN_REFUSALS, {"now": now}).all()]


def forget_refusals(connection: Connection) -> int:
    """Delete all that was learned, also which messages models refuse; return how many rows there were."""
    return connection.execute(delete(model_refusals)).rowcount + connection.execute(delete(refused_messages)).rowcount


def write_refusals(
    connection: Connection, server: str, model: str, news: Mapping[str, str | None], now: datetime
) -> None:
    """Store what a model of a server refuses, each with the wording of that; delete what has expired."""
    connection.execute(_EXPIRED_REFUSALS, {"now": now})
    for what, wording in sorted(news.items()):
        row: dict[str, Any] = {"server": server, "model": model, "what": what, "wording": wording}
        connection.execute(_upsert_refusal(connection), {**row, "learned_at": now, "expires_at": now + _REFUSAL_LASTS})
