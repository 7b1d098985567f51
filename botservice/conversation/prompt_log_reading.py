"""Reading prompt logs: what rows keep, as the messages that were sent."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from botservice.conversation.data_urls import write_data_url
from botservice.conversation.field_codec import lengthen
from botservice.conversation.field_values import FrozenDict, freeze
from botservice.conversation.prompt_log import SYSTEM, HistoryEntry, Kept, OlderHistoryEntry, PromptLog
from botservice.core.messages import Role
from botservice.core.quoting import quote_said, quote_said_in_group
from botservice.history.rows import read_shown
from botservice.history.shown import WAYS
from botservice.storage.blobs import read_blobs
from botservice.storage.tables.conversations import prompt_log, turns

_GONE: Final = "[deleted]"
_OLDER_WAYS: Final = (str, quote_said, quote_said_in_group)
_SYSTEM_PROMPT: Final = select(turns.c.system_prompt).where(turns.c.id == bindparam("turn"))


def read_prompt_log(connection: Connection, context_id: int, turn_id: int) -> PromptLog:
    """Return the log of a turn."""
    log = PromptLog(turn_id)
    query = select(prompt_log.c.seq, prompt_log.c.content).where(prompt_log.c.turn_id == turn_id)
    kept: dict[int, Kept] = {}
    for row in connection.execute(query.order_by(prompt_log.c.seq)):
        kept.update(enumerate(_read_row(row.content), row.seq))
    showing = _Showing(connection, context_id, turn_id, list(kept.values()))
    for place, each in kept.items():
        log.note_stored(place, each, showing.show(each))
    return log


@dataclass(slots=True)
class _Named:
    """What rows name that lies elsewhere."""

    message_ids: set[int] = field(default_factory=set)
    digests: set[str] = field(default_factory=set)

    def note(self, kept: Kept) -> None:
        """Collect the ids and digests that a message names."""
        if isinstance(kept, HistoryEntry | OlderHistoryEntry):
            self.message_ids.add(kept.message_id)
        elif isinstance(kept, list):
            for part in kept[1:]:
                self.message_ids.update(lengthen(part[1:]) if _is_shown(part) else ())
                self._note_digests(part)
        else:
            self._note_digests(kept)

    def _note_digests(self, value: Any) -> None:
        if isinstance(value, dict):
            digest = value.get("$text") or value.get("$image")
            self.digests.update([digest] if isinstance(digest, str) else ())
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._note_digests(each)


def _read_row(content: Mapping[str, Any]) -> Iterator[Kept]:
    """Yield what a row keeps of each message; rows of earlier releases are read as well."""
    if "sent" in content:
        for each in content["sent"]:
            if _is_shown(each):
                yield from (HistoryEntry(each[0], number) for number in lengthen(each[1:]))
            else:
                yield each
    elif "messages" in content:
        ways = content.get("ways", {})
        for place, (number, role, prefix) in enumerate(content["messages"]):
            yield OlderHistoryEntry(number, role, prefix, ways.get(str(place), 0))
    elif "message" in content:
        yield OlderHistoryEntry(content["message"], content["role"], content["prefix"], content.get("way", 0))
    else:
        yield content["literal"]


class _Showing:
    """Shows what is kept as messages."""

    def __init__(self, connection: Connection, context_id: int, turn_id: int, kept: Sequence[Kept]) -> None:
        """Read what kept names."""
        named = _Named()
        for each in kept:
            named.note(each)
        system = None
        if SYSTEM in kept:
            system = connection.execute(_SYSTEM_PROMPT, {"turn": turn_id}).scalar_one_or_none()
        self._messages = read_shown(connection, context_id, named.message_ids)
        self._blobs = read_blobs(connection, context_id, named.digests | ({system} if system else set()))
        self._system = self._text(system)

    def show(self, kept: Kept) -> FrozenDict:
        """Return a message."""
        if isinstance(kept, HistoryEntry):
            message = self._messages.get(kept.message_id)
            role = Role.USER if message is None else message.role
            return FrozenDict.trust({"role": role.value, "content": self._shown(kept.way, kept.message_id)})
        if isinstance(kept, OlderHistoryEntry):
            message = self._messages.get(kept.message_id)
            text = _OLDER_WAYS[kept.way](_GONE if message is None else message.full_text)
            return FrozenDict.trust({"role": kept.role, "content": kept.prefix + text})
        if isinstance(kept, int):
            return FrozenDict.trust({"role": Role.SYSTEM.value, "content": self._system})
        if isinstance(kept, list):
            return FrozenDict.trust({"role": kept[0], "content": "".join(map(self._part, kept[1:]))})
        shown: FrozenDict = freeze(self._attach(kept), "model_input_messages")
        return shown

    def _attach(self, value: Any) -> Any:
        if isinstance(value, dict):
            if "$image" in value:
                return write_data_url(value["mime_type"], self._blobs.get(value["$image"], b""))
            if "$text" in value:
                return self._text(value["$text"])
            return {key: self._attach(each) for key, each in value.items()}
        return [self._attach(each) for each in value] if isinstance(value, list) else value

    def _part(self, part: Any) -> str:
        if isinstance(part, str):
            return part
        if _is_shown(part):
            return "\n".join(self._shown(part[0], number) for number in lengthen(part[1:]))
        return self._text(part["$text"])

    def _shown(self, way: int, number: int) -> str:
        message = self._messages.get(number)
        if message is None:
            return _GONE
        return WAYS[way](message) if way < len(WAYS) else message.full_text  # a later release knows how

    def _text(self, digest: str | None) -> str:
        data = None if digest is None else self._blobs.get(digest)
        return _GONE if data is None else data.decode("utf-8", "surrogatepass")


def _is_shown(value: Any) -> bool:
    """Return whether a value is a way with ids behind it."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], int)
