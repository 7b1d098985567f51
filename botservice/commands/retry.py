"""/retry: asking the last question again, in the place of its answer."""

from collections.abc import Sequence
from functools import partial
from typing import Final

from botservice.commands.command import Command
from botservice.core.messages import InboundMessage, Message
from botservice.turns.command_parsing import CommandAnswer, CommandRequest
from botservice.turns.exchanges import find_last_exchange


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


def _as_asked_now(questions: Sequence[Message], command: InboundMessage) -> InboundMessage:
    """Return the question as one message of its author, which later edits still find."""
    newest = questions[-1]
    return InboundMessage(
        "\n".join(each.text for each in questions if each.text),
        newest.author,
        tuple(file for each in questions for file in each.attachments),
        external_id=newest.external_id,
        language=command.language,
        is_private=command.is_private,
        own_text="",  # what was its author's own in it is not known any more
        references=tuple(held for each in questions for held in each.references),
    )


RETRY: Final = Command("retry", _retry)
