"""/new: a fresh conversation in the same chat."""
# ruff: noqa: RUF001 - ten languages have their own signs

from functools import partial
from typing import Final

from botservice.commands.command import Command, Texts, in_language
from botservice.history.rows import begin_afresh
from botservice.turns.commands import CommandAnswer, CommandRequest

_MENU: Final[Texts] = {
    "en": "Begin a fresh conversation",
    "de": "Ein neues Gespräch beginnen",
    "es": "Empezar una conversación nueva",
    "fr": "Commencer une nouvelle conversation",
    "it": "Iniziare una nuova conversazione",
    "pt": "Começar uma nova conversa",
    "ru": "Начать новый разговор",
    "ko": "새 대화 시작하기",
    "ja": "新しい会話を始める",
    "zh": "开始新的对话",
}
_DONE: Final[Texts] = {
    "en": "A fresh start. What was said before no longer stands in front of me, but I can still find it when it "
    "matters. To delete it, use /forget.",
    "de": "Auf ein Neues. Was bisher gesagt wurde, steht nicht mehr vor mir; ich finde es aber noch, wenn es wichtig "
    "ist. Löschen lässt es sich mit /forget.",
    "es": "Empezamos de nuevo. Ya no tengo delante lo dicho antes, pero aún puedo encontrarlo cuando importe. "
    "Para borrarlo, usa /forget.",
    "fr": "On repart de zéro. Je n’ai plus sous les yeux ce qui a été dit, mais je peux encore le retrouver si besoin. "
    "Pour l’effacer : /forget.",
    "it": "Si ricomincia. Non ho più davanti quanto detto prima, ma posso ancora ritrovarlo quando serve. "
    "Per cancellarlo, usa /forget.",
    "pt": "Começamos de novo. O que foi dito antes já não está à minha frente, mas ainda posso encontrá-lo quando "
    "importar. Para apagar, use /forget.",
    "ru": "Начнём заново. Сказанного раньше больше нет у меня перед глазами, но я могу найти его, когда это важно. "
    "Удалить можно командой /forget.",
    "ko": "새로 시작합니다. 이전 대화는 더 이상 바로 보지 않지만, 필요할 때는 찾을 수 있습니다. "
    "삭제하려면 /forget 을 쓰세요.",
    "ja": "新しく始めます。これまでの話は目の前にはありませんが、必要なときは見つけられます。"
    "消すには /forget を使ってください。",
    "zh": "重新开始。之前的内容不再直接摆在我面前，但需要时仍能找到。要删除请用 /forget。",
}


async def _begin(request: CommandRequest) -> CommandAnswer:
    apply = partial(begin_afresh, context_id=request.context.id)
    return CommandAnswer(in_language(_DONE, request.language), apply=apply)


NEW: Final = Command("new", _MENU, _begin)
