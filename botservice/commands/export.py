"""/export: all that is kept of a person, as a file in their private chat."""

from typing import Final

from botservice.commands.asker import find_asker, unknown
from botservice.commands.command import Command
from botservice.core.messages import Attachment
from botservice.core.threads import run_in_thread
from botservice.privacy.export_queries import begin_export, note_export
from botservice.privacy.exported_data import make_archive, read_person
from botservice.storage.blobs import store_blob
from botservice.storage.database import Connection
from botservice.turns.command_parsing import CommandAnswer, CommandRequest

LAST: Final = "last"
"""What is asked for before everything is forgotten: one archive more than a day has otherwise."""


async def _export(request: CommandRequest) -> CommandAnswer:
    asker = await find_asker(request)
    if asker is None:
        return unknown(request)
    if not asker.is_alone:
        return CommandAnswer(request.say("export.in_private"))
    context, turn_id, identity = request.context, request.turn.id, asker.identity
    most = request.budgets.exports_per_day + (request.call.arguments.strip().lower() == LAST)
    possible_at = await context.storage.write(
        lambda connection: begin_export(connection, turn_id, context.id, identity, request.now, most),
        fence=request.claim,
    )
    if possible_at is not None:
        return CommandAnswer(request.say("export.later", when=request.say_time(possible_at)))
    data = await read_person(context.storage, identity.author)
    archive = await run_in_thread(lambda: make_archive(data), name="export")

    def keep(connection: Connection) -> None:
        digest = store_blob(connection, context.id, archive)  # a delivery names its files by their digests
        note_export(connection, turn_id, digest)

    file = Attachment("application/zip", f"about-you-{request.now:%Y-%m-%d}.zip", data=archive)
    return CommandAnswer(request.say("export.here_it_is"), attachments=(file,), apply=keep)


EXPORT: Final = Command("export", _export, is_counted=True, is_personal=True, needs_files=True)
