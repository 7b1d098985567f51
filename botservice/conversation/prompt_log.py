"""What a turn sent to the model: every distinct message once, and for each call which of them.

A prompt repeats most of the one before it, so a step stores the places of its messages in this log instead of a prompt.
What is new in a prompt is one row. What came from the history is kept by its id: the words stay in one place, and go
from here when they go from there.

A row keeps what a prompt has that those before it had not, as a JSON list in the order of the prompt:

    {"system": true}                    the system prompt of the turn
    {"shown": form, "ids": [id, …]}     messages of the history, shown in one of FORMS
    {"role": role, "parts": [part, …]}  a message whose text has parts: texts, and history, each message in a line
    {"message": {"role": …, …}}         any other message as it is

A long text, and the bytes of an image, are kept once per context; {"$text": digest}, {"$image": digest, …} name them.
What is shown of the history stands in the history alone, and goes with it.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, repeat
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from botservice.conversation.field_codec import FrozenDict, FrozenList, dumps, freeze
from botservice.conversation.images import read_data_url, write_data_url
from botservice.conversation.queries import find_system_prompt, insert_prompts, list_prompts
from botservice.core.messages import Message, Role
from botservice.history.excerpts import Excerpt
from botservice.history.queries import read_shown
from botservice.history.shown import FORMS, Records, Source
from botservice.storage.blobs import digest_of, read_blobs, store_blobs
from botservice.storage.database import Connection

_SYSTEM: Final[Mapping[str, Any]] = {"system": True}  # as JSON has it
_GONE: Final = "[deleted]"
_PLAIN: Final = ("role", "content")
_LONG_TEXT: Final = 512  # characters; longer ones, such as what is known of a person, are kept once per context
_RECURRING: Final = 128  # likewise of what stands in front of records: it is the same all day
_HALVES: Final = re.compile("[\ud800-\udfff]")
_NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})


class HistoryEntry(NamedTuple):
    """A message that is all of one of the history."""

    form: str
    message_id: int


Kept = HistoryEntry | Mapping[str, Any]


class PromptEntry(NamedTuple):
    """A message of a prompt in its stored form, with the bytes that it names, by digest."""

    kept: Kept
    blobs: Mapping[str, bytes] = _NOTHING


Unsaved = tuple[int, PromptEntry]
"""A message that is not stored yet, with its place in the log."""


class PromptLog:
    """The log of one turn.

    Attributes:
        system_prompt: What is stored as that of the turn.
    """

    def __init__(self, turn_id: int, system_prompt: str = "") -> None:
        self.turn_id = turn_id
        self.system_prompt = system_prompt
        self._shown: dict[int, FrozenDict] = {}
        self._next = 0
        self._unsaved: dict[int, PromptEntry] = {}
        self._by_kept: dict[object, int] = {}
        self._by_origin: dict[int, tuple[object, int]] = {}
        self._places: dict[int, tuple[FrozenList, list[int]]] = {}
        self._likely_form = "as_is"

    def record(
        self,
        prompt: Sequence[Mapping[str, Any]],
        *,
        sources: Mapping[int, Source] | None = None,
        origins: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> FrozenList:
        """Return prompt as the value of a step's model_input_messages, known to this log.

        Args:
            sources: What of the history stands where in the prompt.
            origins: What messages are copies of; these objects are the same from one prompt to the next.
        """
        sources, origins = sources or {}, origins or {}
        sequence = [
            self._place(message, sources.get(index))
            if (origin := origins.get(index)) is None
            else self._place_copy(message, origin)
            for index, message in enumerate(prompt)
        ]
        recorded = FrozenList.trust(map(self._shown.__getitem__, sequence))
        self._places[id(recorded)] = (recorded, sequence)
        return recorded

    def places(self, recorded: object) -> list[int] | None:
        """Return the places of a value that `record` or `restore` gave; None for any other."""
        known = self._places.get(id(recorded))
        return known[1] if known is not None and known[0] is recorded else None

    def restore(self, places: Sequence[int]) -> FrozenList:
        """Return the prompt that stands at places."""
        recorded = FrozenList.trust(self._shown[place] for place in places if place in self._shown)
        self._places[id(recorded)] = (recorded, list(places))
        return recorded

    def unsaved(self) -> list[Unsaved]:
        """Return what is not stored yet, with its places."""
        return list(self._unsaved.items())

    def mark_saved(self, saved: Iterable[Unsaved]) -> None:
        """Remember that these are stored."""
        for place, _ in saved:
            self._unsaved.pop(place, None)

    def note_stored(self, place: int, kept: Kept, shown: FrozenDict) -> None:
        """Add a message that was read from a row, as it was stored and as it reads."""
        self._shown[place] = shown
        self._by_kept[_key(kept)] = place
        self._next = max(self._next, place + 1)

    def _place_copy(self, message: Mapping[str, Any], origin: Mapping[str, Any]) -> int:
        known = self._by_origin.get(id(origin))
        if message != origin:
            return self._place(message, None)
        if known is None or known[0] is not origin:
            known = self._by_origin[id(origin)] = (origin, self._place(message, None))
        return known[1]

    def _place(self, message: Mapping[str, Any], source: Source | None) -> int:
        if isinstance(source, Message) and source.id is not None:
            form = find_form(message, source, self._likely_form)
            if form is not None:
                self._likely_form = form
                said = HistoryEntry(form, source.id)
                return self._put(said, message, said)
        if message == {"role": Role.SYSTEM.value, "content": self.system_prompt} and is_stored(self.system_prompt):
            return self._put(_key(_SYSTEM), message, _SYSTEM)
        entry = encode(message, source)
        return self._put(_key(entry.kept), message, *entry)

    def _put(self, key: object, message: Mapping[str, Any], kept: Kept, blobs: Mapping[str, bytes] = _NOTHING) -> int:
        place = self._by_kept.get(key)
        if place is None:
            place = self._by_kept[key] = self._next
            self._next += 1
            self._shown[place] = _freeze(message)
            self._unsaved[place] = PromptEntry(kept, blobs)
        return place


def find_form(message: Mapping[str, Any], source: Message, likely: str) -> str | None:
    """Return the form in which a message of a prompt is one of the history; None if there is more or less to it.

    Args:
        likely: The form that is tried first.
    """
    if len(message) != len(_PLAIN) or message["role"] != source.role:
        return None
    content = message["content"]
    if FORMS[likely](source) == content:
        return likely
    return next((form for form, show in FORMS.items() if show(source) == content), None)


def is_stored(system_prompt: str) -> bool:
    """Return whether a system prompt is stored unchanged with its turn: not empty, and without lone surrogates."""
    return bool(system_prompt) and (system_prompt.isascii() or not _HALVES.search(system_prompt))


def encode(message: Mapping[str, Any], source: Source | None) -> PromptEntry:
    """Return the stored form of a message that is not exactly one of the history."""
    content = message.get("content")
    blobs: dict[str, bytes] = {}
    if source is not None and isinstance(content, str) and len(message) == len(_PLAIN):
        parts = _parts(content, source, blobs)
        if parts is not None:
            return PromptEntry({"role": message["role"], "parts": parts}, blobs)
    return PromptEntry({"message": _detach(message, blobs)}, blobs)


def as_content(entries: Iterable[PromptEntry]) -> str:
    """Return the content of a row for entries."""
    content: list[Mapping[str, Any]] = []
    for kept, _ in entries:
        if not isinstance(kept, HistoryEntry):
            content.append(kept)
        elif content and content[-1].get("shown") == kept.form:
            content[-1]["ids"].append(kept.message_id)
        else:
            content.append(_history(kept.form, [kept.message_id]))
    return dumps(content)


def _history(form: str, ids: Sequence[int]) -> dict[str, Any]:
    return {"shown": form, "ids": list(ids)}


def _key(kept: Kept) -> object:
    """Return what tells the entries of a log apart."""
    return kept if isinstance(kept, HistoryEntry) else json.dumps(dict(kept), sort_keys=True)


def _freeze(message: Mapping[str, Any]) -> FrozenDict:
    if len(message) == 2 and type(message.get("role")) is str and type(message.get("content")) is str:
        return FrozenDict.trust(message)
    frozen: FrozenDict = freeze(dict(message), "model_input_messages")
    return frozen


def _parts(content: str, source: Source, blobs: dict[str, bytes]) -> list[Any] | None:
    """Return content in parts, some of which show what is in the history; None if it shows nothing of that."""
    if isinstance(source, Records):
        text = source.text
        found = [(text, _record_parts(source))] if text and text in content else []
    else:
        forms = ((form, show(source)) for form, show in FORMS.items())
        number = source.id
        found = [
            (text, [_history(form, [number])])
            for form, text in forms
            if number is not None and text and text in content
        ]
    if not found:
        return None
    text, shown = found[0]
    before, _, after = content.partition(text)
    return [part for part in (_detach(before, blobs, _RECURRING), *shown, _detach(after, blobs)) if part]


def _record_parts(records: Records) -> list[Any]:
    """Return the parts of records: a message that is shown in part is not what the history has."""
    parts: list[Any] = []
    stored = [None if isinstance(message, Excerpt) else message.id for message in records.messages]
    forms = [None if number is None else form for number, form in zip(stored, records.forms, strict=True)]
    for form, same in groupby(zip(forms, stored, records.texts, strict=True), lambda each: each[0]):
        group = list(same)
        parts += ["\n"] if parts else []
        ids = [number for _, number, _ in group if number is not None]
        parts.append("\n".join(text for _, _, text in group) if form is None else _history(form, ids))
    return parts


def _detach(value: Any, blobs: dict[str, bytes], long_text: int = _LONG_TEXT) -> Any:
    """Return value with the address of a blob in the place of each image and each long text."""
    if isinstance(value, Mapping):
        return {key: _detach(each, blobs) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_detach(each, blobs) for each in value]
    if not isinstance(value, str) or len(value) < long_text:
        return value
    parsed = read_data_url(value) if value.startswith("data:") else None
    if parsed is not None:
        digest, mime_type, data = parsed
        blobs[digest] = data
        return {"$image": digest, "mime_type": mime_type}
    data = value.encode("utf-8", "surrogatepass")
    digest = digest_of(data)
    blobs[digest] = data
    return {"$text": digest}


def save_prompt_logs(connection: Connection, given: Sequence[tuple[PromptLog, int, Sequence[Unsaved]]]) -> None:
    """Store what `PromptLog.unsaved` gave, which is not nothing, of each log in its context."""
    files: list[tuple[int, bytes]] = []
    rows: list[dict[str, Any]] = []
    for log, context_id, unsaved in given:
        (first, _), *_ = unsaved
        entries = [entry for _, entry in unsaved]
        for entry in entries:
            files += zip(repeat(context_id), entry.blobs.values())
        rows.append({"turn_id": log.turn_id, "seq": first, "context_id": context_id, "content": as_content(entries)})
    if files:
        store_blobs(connection, files)
    insert_prompts(connection, rows)


def read_prompt_log(connection: Connection, context_id: int, turn_id: int) -> PromptLog:
    """Return the log of a turn."""
    log = PromptLog(turn_id)
    kept: dict[int, Kept] = {}
    for row in list_prompts(connection, turn_id):
        kept.update(enumerate(_read_row(row.content), row.seq))
    rendering = _Rendering(connection, context_id, turn_id, list(kept.values()))
    log.system_prompt = rendering.system_prompt
    for place, each in kept.items():
        log.note_stored(place, each, rendering.render(each))
    return log


@dataclass(slots=True)
class _Named:
    """What rows name that lies elsewhere."""

    message_ids: set[int] = field(default_factory=set)
    digests: set[str] = field(default_factory=set)

    def note(self, value: Any) -> None:
        """Collect the ids and digests that a message names."""
        if isinstance(value, HistoryEntry):
            self.message_ids.add(value.message_id)
        elif isinstance(value, Mapping):
            digest = value.get("$text") or value.get("$image")
            self.digests.update([digest] if isinstance(digest, str) else ())
            self.message_ids.update(value["ids"] if "shown" in value else ())
            for each in value.values():
                self.note(each)
        elif isinstance(value, list):
            for each in value:
                self.note(each)


def _read_row(content: str) -> Iterator[Kept]:
    """Yield what a row keeps of each message."""
    for each in json.loads(content):
        if "shown" in each:
            yield from (HistoryEntry(each["shown"], number) for number in each["ids"])
        else:
            yield each


class _Rendering:
    """Renders what is kept as messages.

    Attributes:
        system_prompt: The turn's; empty if there is none, or its key is lost.
    """

    def __init__(self, connection: Connection, context_id: int, turn_id: int, kept: Sequence[Kept]) -> None:
        """Read what kept names."""
        named = _Named()
        named.note(list(kept))
        system = find_system_prompt(connection, turn_id)
        self._messages = read_shown(connection, context_id, named.message_ids)
        self._blobs = read_blobs(connection, context_id, named.digests | ({system} if system else set()))
        self.system_prompt = self._blobs.get(system or "", b"").decode()

    def render(self, kept: Kept) -> FrozenDict:
        """Return a message."""
        if isinstance(kept, HistoryEntry):
            message = self._messages.get(kept.message_id)
            role = Role.USER if message is None else message.role
            return FrozenDict.trust({"role": role.value, "content": self._said(*kept)})
        if "system" in kept:
            return FrozenDict.trust({"role": Role.SYSTEM.value, "content": self.system_prompt or _GONE})
        if "parts" in kept:
            return FrozenDict.trust({"role": kept["role"], "content": "".join(map(self._part, kept["parts"]))})
        shown: FrozenDict = freeze(self._attach(kept["message"]), "model_input_messages")
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
        if "shown" in part:
            return "\n".join(self._said(part["shown"], number) for number in part["ids"])
        return self._text(part["$text"])

    def _said(self, form: str, number: int) -> str:
        message = self._messages.get(number)
        if message is None:
            return _GONE
        show = FORMS.get(form)
        return message.full_text if show is None else show(message)  # a later release knows how

    def _text(self, digest: str | None) -> str:
        data = None if digest is None else self._blobs.get(digest)
        return _GONE if data is None else data.decode("utf-8", "surrogatepass")
