"""/forget and /export: what is kept of a person or a chat, deleted or given as a file."""

import re
from typing import Final

from botservice.commands.command import Asker, Command, find_asker
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Attachment, Button
from botservice.core.quoting import shortened
from botservice.core.threads import run_in_thread
from botservice.privacy.exported_data import make_archive, read_person
from botservice.privacy.forgetting import forget_chat, forget_messages, forget_person
from botservice.privacy.forgotten_counts import Forgotten, Here
from botservice.privacy.queries import find_own_message
from botservice.privacy.right_queries import begin_export, note_export
from botservice.privacy.turn_queries import erase_event
from botservice.storage.blobs import store_blob
from botservice.storage.database import Connection
from botservice.texts.formatted import Value, command, line
from botservice.turns.commands import CommandAnswer, CommandRequest

_LONGEST_SHOWN: Final = 120  # characters of the message that is to go
_ORDER: Final = re.compile(r"(message|chat|me|everything)(?:\s+(\d{1,18}))?(?:\s+(yes))?", re.IGNORECASE)


async def _forget(request: CommandRequest) -> CommandAnswer:
    asker = await find_asker(request)
    order = _ORDER.fullmatch(request.call.arguments.strip())
    if order is None:
        return await _of_a_message(request, asker, None) if request.message.replies_to else _ask_what(request)
    is_sure = order[3] is not None
    match order[1].lower():
        case "message":
            return await _of_a_message(request, asker, int(order[2]) if order[2] else None, is_sure=is_sure)
        case "chat":
            return await _of_the_chat(request, asker, is_sure=is_sure)
        case _:
            return await _of_everything(request, asker, is_sure=is_sure)


def _ask_what(request: CommandRequest) -> CommandAnswer:
    choices = (("forget.message_button", "message"), ("forget.chat_button", "chat"), ("forget.me_button", "me"))
    buttons = tuple(Button(request.label(key), f"/forget {what}") for key, what in choices)
    return CommandAnswer(request.say("forget.what"), buttons)


async def _of_a_message(
    request: CommandRequest, asker: Asker, message_id: int | None, *, is_sure: bool = False
) -> CommandAnswer:
    """Forget a message of the asker: the one that is named, the one they reply to, or their last one here."""
    context = request.context
    author, replies_to = asker.identity.author, request.message.replies_to
    message = await context.storage.read(
        lambda c: find_own_message(c, context.id, author, message_id=message_id, external_id=replies_to)
    )
    if message is None or message.id is None:
        return CommandAnswer(request.say("forget.no_message"))
    if not is_sure:
        shown = shortened(" ".join(message.full_text.split()), _LONGEST_SHOWN)
        return _ask("forget.ask_message", request, f"message {message.id}", said=shown)
    gone = await forget_messages(context.storage, context.id, [message.id], here=_here(request))
    return _done(request, gone)


async def _of_the_chat(request: CommandRequest, asker: Asker, *, is_sure: bool) -> CommandAnswer:
    """Forget a chat, or in a group what the asker wrote there."""
    if not is_sure:
        return _ask("forget.ask_chat" if asker.is_alone else "forget.ask_mine", request, "chat")
    context, storage = request.context, request.context.storage
    if asker.is_alone:
        gone = await forget_chat(storage, context.id, here=_here(request))
        await context.refresh(with_steps=False)
    else:
        gone = await forget_messages(storage, context.id, asker.identity.author, here=_here(request))
    return _done(request, gone)


async def _of_everything(request: CommandRequest, asker: Asker, *, is_sure: bool) -> CommandAnswer:
    if not asker.is_alone:
        return CommandAnswer(request.say("forget.in_private"))
    if not is_sure:
        return _ask("forget.ask_me", request, "me")
    gone = await forget_person(request.context.storage, asker.identity.author, here=_here(request))
    await request.context.refresh(with_steps=False)
    return _done(request, gone, "forgotten.person_stays")


def _here(request: CommandRequest) -> Here:
    return Here(request.context.id, request.turn.id, request.claim)


def _ask(key: str, request: CommandRequest, what: str, **values: str) -> CommandAnswer:
    confirm = f"/forget {what} yes"
    button = Button(request.label("forget.yes_button"), confirm)
    return CommandAnswer(request.say(key, confirm=command(confirm), **values), (button,))


def _done(request: CommandRequest, gone: Forgotten, remains: str = "forgotten.others_stay") -> CommandAnswer:
    """Return the answer with the numbers of what was deleted, and what remains where."""
    storage = request.context.storage
    parts = [request.say("forget.done"), _account(request, gone), request.say(remains)]
    if not storage.is_scrubbed:
        parts.append(request.say("forgotten.traces"))
    parts.append(request.say("forgotten.elsewhere"))
    told: list[Value] = [value for part in parts if part is not None for value in (" ", part)]
    # The platform's own record of this wish names the person too; its bytes leave the files once that is stored.
    return CommandAnswer(
        line(*told[1:]), apply=lambda connection: erase_event(connection, request.turn.id), after=storage.scrub
    )


def _account(request: CommandRequest, gone: Forgotten) -> FormattedText | None:
    """Return what was deleted, such as "Deleted: 3 messages, 2 answers.", or None if nothing was."""
    counts = {
        "forgotten.chats": gone.contexts,
        "forgotten.messages": gone.messages,
        "forgotten.answers": gone.answers,
        "forgotten.files": gone.files,
        "forgotten.facts": gone.facts,
        "forgotten.reminders": gone.reminders,
    }
    parts = [request.label(key, count=count) for key, count in counts.items() if count]
    return request.say("forgotten.deleted", what=", ".join(parts)) if parts else None


FORGET: Final = Command("forget", _forget)


LAST: Final = "last"
"""What is asked for before everything is forgotten: one archive more than a day has otherwise."""


async def _export(request: CommandRequest) -> CommandAnswer:
    asker = await find_asker(request, in_private="export.in_private")
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
