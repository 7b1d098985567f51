"""/retry: the last question anew, in the place of its answer."""
# ruff: noqa: RUF001 - ten languages have their own signs

from collections.abc import Sequence
from functools import partial
from typing import Final

from botservice.commands.command import Command, Texts, in_language
from botservice.messages import InboundMessage, Message
from botservice.turns.commands import CommandAnswer, CommandRequest
from botservice.turns.exchanges import find_last_exchange

_MENU: Final[Texts] = {
    "en": "Answer the last question once more",
    "de": "Die letzte Frage noch einmal beantworten",
    "es": "Responder otra vez la última pregunta",
    "fr": "Répondre à nouveau à la dernière question",
    "it": "Rispondere di nuovo all’ultima domanda",
    "pt": "Responder de novo à última pergunta",
    "ru": "Ответить на последний вопрос ещё раз",
    "ko": "마지막 질문에 다시 답하기",
    "ja": "最後の質問にもう一度答える",
    "zh": "重新回答上一个问题",
}
_NOTHING: Final[Texts] = {
    "en": "There is no question here yet that I could answer once more.",
    "de": "Hier gibt es noch keine Frage, die ich noch einmal beantworten könnte.",
    "es": "Aquí todavía no hay ninguna pregunta que pueda responder otra vez.",
    "fr": "Il n’y a pas encore ici de question à laquelle répondre à nouveau.",
    "it": "Qui non c’è ancora una domanda a cui rispondere di nuovo.",
    "pt": "Aqui ainda não há pergunta que eu possa responder de novo.",
    "ru": "Здесь пока нет вопроса, на который можно ответить ещё раз.",
    "ko": "아직 다시 답할 질문이 없습니다.",
    "ja": "もう一度答えられる質問はまだありません。",
    "zh": "这里还没有可以重新回答的问题。",
}


async def _retry(request: CommandRequest) -> CommandAnswer:
    context_id = request.context.id
    last = await request.context.storage.read(
        lambda connection: find_last_exchange(connection, context_id, request.turn.id)
    )
    if last is None or not last.questions:
        return CommandAnswer(in_language(_NOTHING, request.language))
    question = _as_asked_now(last.questions, request.message)
    return CommandAnswer(apply=partial(last.delete, context_id=context_id), ask=question)


def _as_asked_now(questions: Sequence[Message], command: InboundMessage) -> InboundMessage:
    """Return what was asked as one message, of whoever asked it. An edit of it still finds it."""
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


RETRY: Final = Command("retry", _MENU, _retry)
