"""/forget: a message, a chat, or everything about a person; asked twice, because there is no way back."""

import re
from typing import Final

from sqlalchemy import Connection

from botservice.commands import forget_texts as texts
from botservice.commands import forgotten_texts as said
from botservice.commands.asking import Asker, find_asker, unknown
from botservice.commands.command import Command, Texts, in_language
from botservice.messages import Button, Message
from botservice.people.accounting import Forgotten
from botservice.people.erasing import erase_event
from botservice.people.forgetting import Here, forget_chat, forget_messages, forget_person
from botservice.people.own_messages import find_own_message
from botservice.turns.commands import CommandAnswer, CommandRequest

_LONGEST_SHOWN: Final = 120  # characters of the message that is to go
_ORDER: Final = re.compile(r"(message|chat|me|everything)(?:\s+(\d{1,18}))?(?:\s+(yes))?", re.IGNORECASE)


async def _forget(request: CommandRequest) -> CommandAnswer:
    asker = await find_asker(request)
    if asker is None:
        return unknown(request)
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
    choices = ((texts.MESSAGE_BUTTON, "message"), (texts.CHAT_BUTTON, "chat"), (texts.ME_BUTTON, "me"))
    buttons = tuple(Button(in_language(text, request.language), f"/forget {what}") for text, what in choices)
    return CommandAnswer(in_language(texts.WHAT, request.language), buttons)


async def _of_a_message(
    request: CommandRequest, asker: Asker, message_id: int | None, *, is_sure: bool = False
) -> CommandAnswer:
    """Forget a message of whoever asks: the one they reply to, or their last one here, unless it is named."""
    context = request.context

    def find(connection: Connection) -> Message | None:
        return find_own_message(
            connection, context.id, asker.identity.author, message_id=message_id, external_id=request.message.replies_to
        )

    message = await context.storage.read(find)
    if message is None or message.id is None:
        return CommandAnswer(in_language(texts.NO_MESSAGE, request.language))
    if not is_sure:
        shown = " ".join(message.full_text.split())
        shown = shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}…"
        return _ask(texts.ASK_MESSAGE, request, f"message {message.id}", said=shown)
    gone = await forget_messages(context.storage, context.id, [message.id], here=_here(request))
    return _done(request, gone)


async def _of_the_chat(request: CommandRequest, asker: Asker, *, is_sure: bool) -> CommandAnswer:
    """Forget a chat, or where others write too, what whoever asks wrote there."""
    if not is_sure:
        return _ask(texts.ASK_CHAT if asker.is_alone else texts.ASK_MINE, request, "chat")
    context, storage = request.context, request.context.storage
    if asker.is_alone:
        gone = await forget_chat(storage, context.id, here=_here(request))
        await context.refresh(with_steps=False)
    else:
        gone = await forget_messages(storage, context.id, asker.identity.author, here=_here(request))
    return _done(request, gone)


async def _of_everything(request: CommandRequest, asker: Asker, *, is_sure: bool) -> CommandAnswer:
    if not asker.is_alone:
        return CommandAnswer(in_language(texts.IN_PRIVATE, request.language))
    if not is_sure:
        return _ask(texts.ASK_ME, request, "me")
    gone = await forget_person(request.context.storage, asker.identity.author, here=_here(request))
    await request.context.refresh(with_steps=False)
    return _done(request, gone, said.PERSON_STAYS)


def _here(request: CommandRequest) -> Here:
    return Here(request.context.id, request.turn.id)


def _ask(wording: Texts, request: CommandRequest, what: str, **values: str) -> CommandAnswer:
    confirm = f"/forget {what} yes"
    text = in_language(wording, request.language).format(confirm=confirm, **values)
    return CommandAnswer(text, (Button(in_language(texts.YES_BUTTON, request.language), confirm),))


def _done(request: CommandRequest, gone: Forgotten, remains: Texts = said.OTHERS_STAY) -> CommandAnswer:
    """Return what was deleted, what remains, and where; numbers and no names."""
    storage, language = request.context.storage, request.language
    parts = [in_language(texts.DONE, language), said.account_of(gone, language), in_language(remains, language)]
    if not storage.is_scrubbed:
        parts.append(in_language(said.TRACES, language))
    parts.append(in_language(said.ELSEWHERE, language))
    # The platform's own record of this wish names the person too; its bytes leave the files once that is stored.
    return CommandAnswer(
        " ".join(part for part in parts if part),
        apply=lambda connection: erase_event(connection, request.turn.id),
        after=storage.scrub,
    )


FORGET: Final = Command("forget", texts.MENU, _forget)
