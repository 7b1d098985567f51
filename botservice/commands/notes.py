"""The notes of a chat in /memory: everyone there may see them, and delete those that came from their own words."""

from datetime import datetime
from functools import partial

from botservice.commands.asker import Asker
from botservice.core.formatted_text import FormattedText, Span
from botservice.history.note_queries import delete_note, read_notes
from botservice.history.notes import StoredNote
from botservice.history.queries import authors_of
from botservice.people.queries import identities_of
from botservice.privacy.cleaning import clean_and_scrub
from botservice.privacy.export_queries import drop_exports
from botservice.privacy.record_queries import queue_texts
from botservice.storage.database import Connection
from botservice.texts.formatted import bulleted, line, quoted
from botservice.turns.command_parsing import CommandAnswer, CommandRequest


async def list_notes(request: CommandRequest) -> list[FormattedText]:
    """Return the parts of an answer that list the notes of its chat, or none if there are none."""
    context_id = request.context.id
    found = await request.context.storage.read(lambda connection: read_notes(connection, context_id))
    if not found:
        return []
    how = request.say("memory.note_how", number=found[-1].note.number)
    return [request.say("memory.notes"), bulleted(_line(each, request) for each in found), how]


async def delete_asked_note(number: int, asker: Asker, request: CommandRequest) -> CommandAnswer:
    """Delete a note and return the answer; in a group, it must have come from the asker's own words."""
    context_id = request.context.id
    may = await request.context.storage.read(lambda connection: _may_delete(connection, context_id, number, asker))
    if not may:
        return CommandAnswer(request.say("memory.unknown_note", number=str(number)))
    return CommandAnswer(
        request.say("memory.note_deleted", number=str(number)),
        apply=lambda connection: erase_note(connection, context_id, number, request.now),
        after=partial(clean_and_scrub, request.context.storage, request.claim),
    )


def erase_note(connection: Connection, context_id: int, number: int, now: datetime) -> None:
    """Delete a note of a chat, also from the record of the agent's work: see `clean_and_scrub`."""
    drop_exports(connection, context_id, now)
    text = delete_note(connection, context_id, number)
    if text is not None:
        queue_texts(connection, [context_id], [text], now)


def _may_delete(connection: Connection, context_id: int, number: int, asker: Asker) -> bool:
    note = next((each.note for each in read_notes(connection, context_id) if each.note.number == number), None)
    if note is None or asker.is_alone:
        return note is not None
    own = {(each.platform, each.platform_id) for each in identities_of(connection, asker.person_id)}
    return not own.isdisjoint(authors_of(connection, context_id, note.message_ids))


def _line(stored: StoredNote, request: CommandRequest) -> FormattedText:
    note = stored.note
    shown = request.say("memory.note", text=quoted(note.text), date=f"{note.at:%Y-%m-%d}")
    return line(Span(f"N{note.number}", bold=True), " ", shown)
