"""What is kept of one person, to be given to them: as JSON values, and as an archive that people can read.

In a conversation that is theirs alone that is all of it. In one with others it is what they said, and what the
assistant answered them: what others said is not theirs to take, also where they quote, forward or share it.
"""

import io
import json
import re
import zipfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import itemgetter
from typing import Any, Final

from botservice.core.errors import StorageError
from botservice.core.message_references import Reference, keep_files, write_out_for
from botservice.core.messages import Attachment, Author, Message
from botservice.core.progress import Progress, unwatched
from botservice.history.note_queries import read_notes
from botservice.history.notes import Note
from botservice.people.fact_queries import facts_of
from botservice.people.facts import Fact
from botservice.people.names import key_text, transport_of
from botservice.people.queries import find_identity
from botservice.privacy.account_queries import accounts_of
from botservice.privacy.queries import contexts_of
from botservice.privacy.right_queries import read_others, read_said
from botservice.storage.database import Connection, Storage

MAX_FILES_BYTES: Final = 40_000_000  # of all attachments of an archive that a chat has to carry (Bot API: 50 MB)

_UNSAFE = re.compile(r"[^\w.-]+")


@dataclass(frozen=True, slots=True)
class Conversation:
    """What of a conversation is a person's, oldest first."""

    id: int
    keys: Mapping[str, str]
    messages: Sequence[Message]
    notes: Sequence[Note] = ()

    @property
    def title(self) -> str:
        """Its platform and its names there."""
        names = [key_text(value) for key, value in sorted(self.keys.items()) if key != "transport"]
        return " ".join([transport_of(self.keys, "chat"), *names])


@dataclass(frozen=True, slots=True)
class PersonalData:
    """What is kept of a person."""

    accounts: Sequence[Author]
    facts: Sequence[Fact] = ()
    conversations: Sequence[Conversation] = ()
    others: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


async def read_person(storage: Storage, person: Author, progress: Progress = unwatched) -> PersonalData:
    """Return what is kept of a person, on every platform that they have linked."""
    data = await storage.read(lambda connection: _read_about(connection, person), is_long=True)
    context_ids = await storage.read(lambda connection: contexts_of(connection, data.accounts), is_long=True)
    if not context_ids and not data.facts and not await storage.read(lambda c: find_identity(c, person)):
        raise StorageError(f"there is no message of {person.platform}:{person.id}, nor anything else")
    found = []
    for number in context_ids:
        read = partial(_read_conversation, context_id=number, accounts=data.accounts)
        found.append(await storage.read(read, is_long=True))
        progress(len(found), len(context_ids), "conversations")
    return PersonalData(data.accounts, data.facts, found, data.others)


def as_values(data: PersonalData, files: Mapping[tuple[int, int], str] | None = None) -> dict[str, Any]:
    """Return what is kept of a person as JSON values.

    Args:
        files: Where the files of an archive are, by the message's id and their place in it.
    """
    own = {(each.platform, each.id) for each in data.accounts}
    noted = [values for each in data.conversations for values in _note_values(each)]
    said: list[dict[str, Any]] = []
    answered: list[dict[str, Any]] = []
    for conversation in data.conversations:
        for message in conversation.messages:
            author = message.author
            is_own = author is not None and (author.platform, author.id) in own
            (said if is_own else answered).append(_message_values(conversation, message, files or {}))
    return {
        "accounts": [{"platform": each.platform, "id": each.id, "name": each.name} for each in data.accounts],
        "facts": [_fact_values(each) for each in data.facts],
        "messages": sorted(said, key=itemgetter("id")),
        "answers": sorted(answered, key=itemgetter("id")),
        **({"notes": noted} if noted else {}),
        **data.others,
    }


def make_archive(data: PersonalData, *, max_files_bytes: int | None = MAX_FILES_BYTES) -> bytes:
    """Return a zip file with data.json, a readable page for each conversation, and the files.

    Args:
        max_files_bytes: Files beyond so many bytes are named and left out; None for all of them.
    """
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        paths = _write_files(archive, data.conversations, max_files_bytes)
        archive.writestr("data.json", json.dumps(as_values(data, paths), indent=2, ensure_ascii=False))
        archive.writestr("about-you.md", _about(data))
        for number, conversation in enumerate(data.conversations, 1):
            name = f"{number:03}-{_UNSAFE.sub('-', conversation.title)[:60]}"
            archive.writestr(f"conversations/{name}.md", _page(conversation, paths))
    return target.getvalue()


def _read_about(connection: Connection, person: Author) -> PersonalData:
    accounts, identity = accounts_of(connection, person), find_identity(connection, person)
    known = () if identity is None else facts_of(connection, identity.person_id, with_ended=True)
    return PersonalData(accounts, known, (), read_others(connection, accounts))


def _read_conversation(connection: Connection, context_id: int, accounts: Sequence[Author]) -> Conversation:
    own = {(each.platform, each.id) for each in accounts}
    keys, said, is_alone = read_said(connection, context_id, own)
    noted = [each.note for each in read_notes(connection, context_id)] if is_alone else []
    return Conversation(context_id, keys, [_as_given(each, own, is_alone=is_alone) for each in said], noted)


def _as_given(message: Message, own: Collection[tuple[str | None, str | None]], *, is_alone: bool) -> Message:
    """Return a message without what others said in it; what the assistant said may be about others where they write."""

    def is_shown(reference: Reference) -> bool:
        author = reference.author or Author()
        is_theirs = (author.platform, author.id) in own or (reference.is_of_assistant and is_alone)
        return is_theirs or reference.is_erased

    text = write_out_for(message.text, message.references, is_shown)
    files = keep_files(message.attachments, message.references, is_shown)
    return replace(message, text=text, references=(), attachments=tuple(files))


def _message_values(
    conversation: Conversation, message: Message, files: Mapping[tuple[int, int], str]
) -> dict[str, Any]:
    number = message.id or 0
    attachments = []
    for place, each in enumerate(message.attachments):
        about: dict[str, Any] = {"name": each.name, "mime_type": each.mime_type}
        if each.url is not None:
            about["url"] = each.url
        elif (number, place) in files:
            about["file"] = files[number, place]
        attachments.append(about)
    return {
        "id": number,
        "context": {"id": conversation.id, "keys": dict(conversation.keys)},
        "name": message.author.name if message.author else None,
        "text": message.text,
        "created_at": message.created_at.isoformat(),
        "attachments": attachments,
    }


def _fact_values(fact: Fact) -> dict[str, Any]:
    return {
        "id": fact.id,
        "topic": fact.topic,
        "text": fact.text,
        "said": fact.said,
        "context": {"id": fact.context_id, "keys": dict(fact.context_keys or {})},
        "is_shareable": fact.is_shareable,
        "created_at": fact.created_at.isoformat(),
        "updated_at": fact.updated_at.isoformat(),
        "valid_from": fact.since.isoformat(),
        "valid_to": None if fact.until is None else fact.until.isoformat(),
    }


def _note_values(conversation: Conversation) -> list[dict[str, Any]]:
    return [
        {
            "context": {"id": conversation.id, "keys": dict(conversation.keys)},
            "number": note.number,
            "text": note.text,
            "at": note.at.isoformat(),
            "messages": list(note.message_ids),
        }
        for note in conversation.notes
    ]


def _write_files(
    archive: zipfile.ZipFile, conversations: Sequence[Conversation], limit: int | None
) -> dict[tuple[int, int], str]:
    """Put files into an archive, the newest first, and return their paths by message and place."""
    paths: dict[tuple[int, int], str] = {}
    total = 0
    every = [message for each in conversations for message in each.messages]
    for message in sorted(every, key=lambda each: each.id or 0, reverse=True):
        for place, each in enumerate(message.attachments):
            if each.data is None or (limit is not None and total + len(each.data) > limit):
                continue
            total += len(each.data)
            path = paths[message.id or 0, place] = f"files/{message.id}-{place + 1}-{_file_name(each)}"
            archive.writestr(path, each.data)
    return paths


def _file_name(attachment: Attachment) -> str:
    name = _UNSAFE.sub("-", attachment.name or attachment.mime_type).strip(".-")
    return name[-60:] or "file"


def _about(data: PersonalData) -> str:
    lines = ["# What is kept of you", "", "## Your accounts", ""]
    lines += [f"- {each.platform}: {each.name or ''} ({each.id})" for each in data.accounts]
    lines += ["", "## What the assistant knows of you", ""]
    lines += [_about_fact(each) for each in data.facts] or ["Nothing."]
    if any(each.notes for each in data.conversations):
        lines += ["", "## What is noted of your chats", ""]
        lines += [f"- {note.text} ({note.at:%Y-%m-%d})" for each in data.conversations for note in each.notes]
    for name, rows in data.others.items():
        lines += ["", f"## {name.replace('_', ' ').capitalize()}", ""]
        lines += [
            f"- {', '.join(f'{key}: {value}' for key, value in row.items() if value is not None)}" for row in rows
        ]
    return "\n".join([*lines, ""])


def _about_fact(fact: Fact) -> str:
    until = "" if fact.until is None else f" to {fact.until:%Y-%m-%d}"
    return f"- {fact.text} ({fact.since:%Y-%m-%d}{until})"


def _page(conversation: Conversation, paths: Mapping[tuple[int, int], str]) -> str:
    lines = [f"# {conversation.title}", ""]
    for message in conversation.messages:
        name = message.author.name if message.author and message.author.name else message.role.value
        lines += [f"**{name}**, {message.created_at:%Y-%m-%d %H:%M} UTC", "", message.text, ""]
        for place, each in enumerate(message.attachments):
            path = paths.get((message.id or 0, place))
            shown = each.name or each.mime_type
            lines += [f"[{shown}](../{path})" if path else f"({shown}: left out)", ""]
    return "\n".join(lines)
