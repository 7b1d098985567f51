"""The commands of documents: what a source says, and adding a file that was sent to the chat."""

import itertools
import re
from typing import Final

from botservice.commands.command import Command, require_owner
from botservice.core.chat_addresses import address_of
from botservice.core.errors import KnowledgeError
from botservice.core.formatted_text import Span
from botservice.core.messages import Attachment, Button
from botservice.knowledge.indexer import ALL, KnowledgeIndexer
from botservice.knowledge.stored_documents import StoredDocuments
from botservice.people.names import person_name
from botservice.texts.formatted import below, line, words
from botservice.turns.commands import CommandAnswer, CommandRequest

_NUMBER: Final = re.compile(r"\d{1,18}", re.ASCII)
_MOST_SHOWN: Final = 5
_LOOKED_THROUGH: Final = 20  # messages
_HERE: Final = "here"
_OWNERS: Final = "owners"


async def _show(request: CommandRequest) -> CommandAnswer:
    """Answer with the words of passages, where this chat may read them."""
    ids = [int(each) for each in request.call.arguments.split()[:_MOST_SHOWN] if _NUMBER.fullmatch(each)]
    found = await StoredDocuments(request.access).get(ids, request.context)
    if not found:
        return CommandAnswer(request.say("passage.gone"))
    parts = ((line(Span(each.place, bold=True)), line(words(each.text))) for each in found)
    return CommandAnswer(below(*itertools.chain.from_iterable(parts)))


async def _learn(request: CommandRequest) -> CommandAnswer:
    """Add the file that was sent last to the documents; ask who may read it where that is not said."""
    require_owner(request)
    file = await _find_file(request)
    if file is None or not file.name or file.data is None:
        return CommandAnswer(request.say("learn.nothing"))
    who = request.call.arguments.strip().lower()
    here = address_of(request.context.id, request.context.context_keys)
    readers = {ALL: (ALL,), _HERE: (here,), _OWNERS: ()}
    if who not in readers:
        buttons = (
            Button(request.label("learn.owners"), f"/{LEARN.name} {_OWNERS}"),
            Button(request.label("learn.here"), f"/{LEARN.name} {_HERE}"),
            Button(request.label("learn.all"), f"/{LEARN.name} {ALL}"),
        )
        return CommandAnswer(request.say("learn.ask", name=file.name), buttons)
    try:
        count = await KnowledgeIndexer(request.context.storage).add_file(file.name, file.data, readers[who])
    except KnowledgeError as error:
        return CommandAnswer(request.say("learn.problem", name=file.name, reason=str(error)))
    return CommandAnswer(request.say("learn.done", name=file.name, count=count))


async def _find_file(request: CommandRequest) -> Attachment | None:
    """Return the file that came with the command, or the newest one before it that the same person sent."""
    files, asker = [*request.message.attachments], person_name(request.message.author)
    for message in await request.context.chat_history.messages(limit=_LOOKED_THROUGH):
        if person_name(message.author) == asker:  # no other person slips in a file between a question and its button
            files[:0] = message.attachments
    documents = [each for each in files if not each.mime_type.startswith(("image/", "audio/", "video/"))]
    return documents[-1] if documents else None


PASSAGE: Final = Command("passage", _show, is_listed=False)
LEARN: Final = Command("learn", _learn, is_listed=False)
