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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, repeat
from typing import Any, Final, Self

from botservice.conversation.field_codec import FrozenDict, FrozenList, dumps, freeze
from botservice.conversation.images import read_data_url, write_data_url
from botservice.conversation.queries import find_system_prompt, insert_prompts, list_prompts
from botservice.core.messages import Message, Role
from botservice.history.excerpts import Excerpt
from botservice.history.message_rendering import FORMS, Records, Source
from botservice.history.queries import read_shown
from botservice.history.recent import Recent
from botservice.storage.blobs import digest_of, read_blobs, store_blobs
from botservice.storage.database import Connection

_SYSTEM: Final[Mapping[str, Any]] = {"system": True}  # as JSON has it
_GONE: Final = "[deleted]"
_TEXTS: Final = frozenset({str})
_LONG_TEXT: Final = 256  # characters; longer ones, such as what stands in front of records, are kept once per context

Kept = tuple[str, int] | Mapping[str, Any]
"""A message of a prompt in its stored form; one that shows a message of the history is the form and its id."""

Unsaved = Mapping[int, tuple[Kept, Mapping[str, bytes]]]
"""What is not stored yet, by its place in the log, with the bytes that it names by their digests."""


class RecordedPrompt(FrozenList):
    """A prompt whose messages stand in a log: the value of a step's `model_input_messages`.

    Attributes:
        places: Where each of them stands.
    """

    log: "PromptLog"
    places: Sequence[int]

    @classmethod
    def of(cls, log: "PromptLog", messages: Iterable[FrozenDict], places: Sequence[int]) -> Self:
        """Return messages of a log as a prompt."""
        new = cls.trust(messages)
        new.log, new.places = log, places
        return new


class PromptLog:
    """The log of one turn.

    Attributes:
        system_prompt: What is stored as that of the turn.
    """

    def __init__(self, turn_id: int, system_prompt: str = "") -> None:
        self.turn_id = turn_id
        self.system_prompt = system_prompt.encode("utf-8", "replace").decode()
        self._system_message = {"role": Role.SYSTEM.value, "content": self.system_prompt} if system_prompt else None
        self._unsaved: dict[int, tuple[Kept, Mapping[str, bytes]]] = {}
        self._messages: dict[int, FrozenDict] = {}
        self._places: dict[tuple[str, int] | str, int] = {}  # by the stored form

    def record(
        self, prompt: Sequence[Mapping[str, Any]], sources: Mapping[int, Source] | None = None
    ) -> RecordedPrompt:
        """Return prompt as the value of a step's model_input_messages.

        Args:
            sources: What of the history stands where in the prompt.
        """
        sources = sources or {}
        places = [self._place(message, sources.get(index)) for index, message in enumerate(prompt)]
        return RecordedPrompt.of(self, [self._messages[place] for place in places], places)

    def restore(self, places: Sequence[int]) -> RecordedPrompt:
        """Return the prompt that stands at places."""
        return RecordedPrompt.of(self, [self._messages[each] for each in places if each in self._messages], places)

    def places(self, prompt: object) -> Sequence[int] | None:
        """Return the places of a value that this log gave; None for any other."""
        return prompt.places if isinstance(prompt, RecordedPrompt) and prompt.log is self else None

    def unsaved(self) -> Unsaved:
        """Return what is not stored yet."""
        return dict(self._unsaved)

    def mark_saved(self, saved: Unsaved) -> None:
        """Remember that this is stored."""
        for place in saved:
            self._unsaved.pop(place, None)

    def note_stored(self, place: int, kept: Kept, message: FrozenDict) -> None:
        """Add a message that was read from a row, as it was stored and as it reads."""
        self._messages[place] = message
        self._places[kept if isinstance(kept, tuple) else str(kept)] = place

    def _place(self, message: Mapping[str, Any], source: Source | None) -> int:
        blobs: dict[str, bytes] = {}
        kept = _SYSTEM if message == self._system_message else _as_kept(message, source, blobs)
        key = kept if isinstance(kept, tuple) else str(kept)
        place = self._places.get(key)
        if place is None:
            place = self._places[key] = next(reversed(self._messages), -1) + 1
            self._messages[place] = _frozen(message)
            self._unsaved[place] = kept, blobs
        return place


def _frozen(message: Mapping[str, Any]) -> FrozenDict:
    # Nearly all have texts alone, and need no look.
    if _TEXTS.issuperset(map(type, message)) and _TEXTS.issuperset(map(type, message.values())):
        return FrozenDict.trust(message)
    frozen: FrozenDict = freeze(dict(message), "model_input_messages")
    return frozen


def _as_kept(message: Mapping[str, Any], source: Source | None, blobs: dict[str, bytes]) -> Kept:
    """Return the stored form of a message; what of it shows the history is named alone."""
    content = message.get("content")
    if source is None or not isinstance(content, str) or len(message) != 2 or "role" not in message:
        return {"message": _detach(message, blobs)}
    if isinstance(source, Message) and source.id is not None and message["role"] == source.role:
        for form, show in FORMS.items():
            if show(source) == content:
                return form, source.id
    for text, parts in _shown(source):
        if text and text in content:
            before, _, after = content.partition(text)
            around = (_detach(before, blobs), *parts, _detach(after, blobs))
            return {"role": message["role"], "parts": [part for part in around if part]}
    return {"message": _detach(message, blobs)}


def _shown(source: Source) -> Iterator[tuple[str, list[Any]]]:
    """Yield each text in which a prompt may show a source, with its stored form."""
    if isinstance(source, Records):
        yield source.text, _record_parts(source)
    elif source.id is not None:
        for form, show in FORMS.items():
            yield show(source), [_history(form, [source.id])]


def _history(form: str, ids: Sequence[int]) -> dict[str, Any]:
    return {"shown": form, "ids": list(ids)}


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


def _detach(value: Any, blobs: dict[str, bytes]) -> Any:
    """Return value with the address of a blob in the place of each image and each long text."""
    if isinstance(value, Mapping):
        return {key: _detach(each, blobs) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_detach(each, blobs) for each in value]
    if not isinstance(value, str) or len(value) < _LONG_TEXT:
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


def save_prompt_logs(connection: Connection, given: Sequence[tuple[PromptLog, int, Unsaved]]) -> None:
    """Store what `PromptLog.unsaved` gave, which is not nothing, of each log in its context."""
    files: list[tuple[int, bytes]] = []
    rows: list[dict[str, Any]] = []
    for log, context_id, unsaved in given:
        content: list[Mapping[str, Any]] = []
        for kept, blobs in unsaved.values():
            files += zip(repeat(context_id), blobs.values())
            if not isinstance(kept, tuple):
                content.append(kept)
            elif content and content[-1].get("shown") == kept[0]:
                content[-1]["ids"].append(kept[1])
            else:
                content.append(_history(kept[0], [kept[1]]))
        place = min(unsaved)
        rows.append({"turn_id": log.turn_id, "seq": place, "context_id": context_id, "content": dumps(content)})
    if files:
        store_blobs(connection, files)
    insert_prompts(connection, rows)


def read_prompt_log(connection: Connection, context_id: int, turn_id: int, recent: Recent | None = None) -> PromptLog:
    """Return the log of a turn.

    Args:
        recent: Messages of the context that are known without reading.
    """
    kept: dict[int, Kept] = {}
    for row in list_prompts(connection, turn_id):
        kept.update(enumerate(_read_row(row.content), row.seq))
    rendering = _Rendering(connection, context_id, turn_id, list(kept.values()), recent)
    log = PromptLog(turn_id, rendering.system_prompt)
    for place, each in kept.items():
        log.note_stored(place, each, rendering.render(each))
    return log


def _read_row(content: str) -> Iterator[Kept]:
    """Yield what a row keeps of each message."""
    for each in json.loads(content):
        if "shown" in each:
            yield from ((each["shown"], number) for number in each["ids"])
        else:
            yield each


class _Rendering:
    """Renders what is kept as messages.

    Attributes:
        system_prompt: The turn's; empty if there is none, or its key is lost.
    """

    def __init__(
        self, connection: Connection, context_id: int, turn_id: int, kept: Sequence[Kept], recent: Recent | None
    ) -> None:
        """Read what kept names."""
        others = [each for each in kept if not isinstance(each, tuple)]
        parts = [part for each in others for part in each.get("parts", ()) if isinstance(part, Mapping)]
        ids = {each[1] for each in kept if isinstance(each, tuple)}
        ids.update(number for part in parts if "shown" in part for number in part["ids"])
        system = find_system_prompt(connection, turn_id)
        digests = {*_digests(others), *([system] if system else [])}
        known = {} if recent is None else recent.of_ids(ids)
        self._messages = {number: message for number, (_, message) in known.items()}
        self._messages |= read_shown(connection, context_id, ids - known.keys())
        self._blobs = read_blobs(connection, context_id, digests)
        self.system_prompt = self._blobs.get(system or "", b"").decode()

    def render(self, kept: Kept) -> FrozenDict:
        """Return a message."""
        if isinstance(kept, tuple):
            message = self._messages.get(kept[1])
            role = Role.USER if message is None else message.role
            return FrozenDict.trust({"role": role.value, "content": self._said(*kept)})
        if "system" in kept:
            return FrozenDict.trust({"role": Role.SYSTEM.value, "content": self.system_prompt or _GONE})
        if "parts" in kept:
            return FrozenDict.trust({"role": kept["role"], "content": "".join(map(self._part, kept["parts"]))})
        return _frozen(self._attach(kept["message"]))

    def _part(self, part: Any) -> str:
        if isinstance(part, dict) and "shown" in part:
            return "\n".join(self._said(part["shown"], number) for number in part["ids"])
        return str(self._attach(part))

    def _attach(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self._attach(each) for each in value]
        if not isinstance(value, dict):
            return value
        if "$image" in value:
            return write_data_url(value["mime_type"], self._blobs.get(value["$image"], b""))
        if "$text" in value:
            data = self._blobs.get(value["$text"])
            return _GONE if data is None else data.decode("utf-8", "surrogatepass")
        return {key: self._attach(each) for key, each in value.items()}

    def _said(self, form: str, number: int) -> str:
        message = self._messages.get(number)
        if message is None:
            return _GONE
        show = FORMS.get(form)
        return message.full_text if show is None else show(message)  # a later release knows how


def _digests(value: Any) -> Iterator[str]:
    """Yield the digests that a stored value names."""
    if isinstance(value, dict):
        digest = value.get("$text") or value.get("$image")
        if isinstance(digest, str):
            yield digest
        value = value.values()
    for each in value:
        if isinstance(each, dict | list):
            yield from _digests(each)
