"""/answer and /cancel: what a person replies to a question of a tool; buttons and plain words come here as well."""

from typing import Final

from botservice.agent.tool_questions import ReplyAction
from botservice.commands.command import Command
from botservice.texts.formatted import below
from botservice.turns.call_queries import find_call
from botservice.turns.commands import CommandAnswer, CommandRequest
from botservice.turns.tool_answers import (
    ANSWER,
    CANCEL,
    WrongAnswer,
    choose_question,
    find_questions,
    parse_answer,
    read_answer,
    read_choice,
    store_answer,
)


async def _answer(request: CommandRequest) -> CommandAnswer:
    number, step, place, words = parse_answer(request.call.arguments)
    is_cancelled = request.call.name == CANCEL
    context_id, author = request.context.id, request.message.author
    found, known = await request.context.storage.read(
        lambda connection: (
            find_questions(connection, context_id, author, request.now),
            None if number is None else find_call(connection, context_id, number),
        )
    )
    chosen = choose_question(found, number)
    if chosen is None:
        is_of_another = known is not None and known.is_waiting and known.expires_at > request.now
        refusal = "buttons.not_asked" if is_of_another else "asking.none" if known is None else "asking.over"
        return CommandAnswer(request.say(refusal), is_personal=True)
    call, exchange = chosen
    if step is not None and step != exchange.step:
        return CommandAnswer(request.say("asking.over"), is_personal=True)
    language = request.message.language
    try:
        if is_cancelled:
            after = exchange.ended(ReplyAction.CANCEL)
        elif place is not None:
            after = exchange.with_value(read_choice(exchange.field, place, language))
        else:
            after = exchange.with_value(read_answer(exchange.field, words, language))
    except WrongAnswer as wrong:
        return CommandAnswer(below(wrong.text, request.say("asking.again", number=call.id), is_close=True))
    return CommandAnswer(apply=lambda connection: store_answer(connection, call, exchange.step, after, request.now))


ANSWER_COMMAND: Final = Command(ANSWER, _answer, is_listed=False)
CANCEL_COMMAND: Final = Command(CANCEL, _answer, is_listed=False)
