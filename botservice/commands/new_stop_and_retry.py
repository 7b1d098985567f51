"""/new, /stop and /retry: beginning afresh, stopping, and asking the last question again."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from botservice.commands.command import Command
from botservice.core.message_references import Reference, ReferenceKind
from botservice.core.messages import InboundMessage, Message
from botservice.history.queries import begin_afresh
from botservice.turns.commands import CommandAnswer, CommandRequest
from botservice.turns.earlier_turns import find_last_exchange


async def _stop(request: CommandRequest) -> CommandAnswer:
    """Answer that nothing runs: transports handle /stop past the queue, so one that queued had nothing to stop."""
    return CommandAnswer(request.say("stop.nothing"))


STOP: Final = Command("stop", _stop)


async def _begin(request: CommandRequest) -> CommandAnswer:
    open_topic = request.open_topic if request.message.is_private else None
    if open_topic is not None and await open_topic(request.label("new.topic_name")):
        return CommandAnswer(request.say("new.topic"))
    apply = partial(begin_afresh, context_id=request.context.id)
    return CommandAnswer(request.say("new.done"), apply=apply)


NEW: Final = Command("new", _begin)


async def _retry(request: CommandRequest) -> CommandAnswer:
    context_id = request.context.id
    last = await request.context.storage.read(
        lambda connection: find_last_exchange(connection, context_id, request.turn.id)
    )
    if last is None or not last.questions:
        return CommandAnswer(request.say("retry.nothing"))
    question = _as_asked_now(last.questions, request.message)
    request.context.asked_by = request.message.author  # the words stay whose they are; who wants them done is another
    return CommandAnswer(apply=partial(last.delete, context_id=context_id), ask=question)


def _as_asked_now(asked: Sequence[Message], command: InboundMessage) -> InboundMessage:
    """Return the question as one message of its author, which later edits still find.

    What others said in the same turn stands in it as theirs: nobody is made to say the words of others.
    """
    newest = asked[-1]
    questions = [each for each in asked if each.author == newest.author]
    others = [each for each in asked if each.author != newest.author]
    references = [held for each in questions for held in each.references]
    for each in others:
        references.append(_as_said(each))
        references += [replace(held, file_count=0) for held in each.references]
    return InboundMessage(
        "\n".join(each.text for each in questions if each.text),
        newest.author,
        tuple(file for each in (*questions, *others) for file in each.attachments),
        external_id=newest.external_id,
        language=command.language,
        is_private=command.is_private,
        own_text="",  # what was its author's own in it is not known any more
        references=tuple(references),
    )


def _as_said(message: Message) -> Reference:
    text, files = message.text, len(message.attachments)
    return Reference(ReferenceKind.FORWARD, message.author, text, message.external_id, file_count=files)


RETRY: Final = Command("retry", _retry)
