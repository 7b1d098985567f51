"""What people are told about budgets, in ten languages."""
# ruff: noqa: RUF001 - ten languages have their own signs

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from botservice.policies import Scope

_ENGLISH: Final = "en"
_WHOSE: Final[Mapping[str, Mapping[str, str]]] = {
    "person": {
        "en": "your budget",
        "de": "dein Budget",
        "es": "tu presupuesto",
        "fr": "votre budget",
        "it": "il tuo budget",
        "pt": "seu orçamento",
        "ru": "ваш бюджет",
        "ko": "내 예산",
        "ja": "あなたの予算",
        "zh": "你的预算",
    },
    "chat": {
        "en": "this chat’s budget",
        "de": "das Budget dieses Chats",
        "es": "el presupuesto de este chat",
        "fr": "le budget de cette discussion",
        "it": "il budget di questa chat",
        "pt": "o orçamento desta conversa",
        "ru": "бюджет этого чата",
        "ko": "이 대화의 예산",
        "ja": "このチャットの予算",
        "zh": "此聊天的预算",
    },
    "service": {
        "en": "this bot’s budget",
        "de": "das Budget dieses Bots",
        "es": "el presupuesto de este bot",
        "fr": "le budget de ce bot",
        "it": "il budget di questo bot",
        "pt": "o orçamento deste bot",
        "ru": "бюджет этого бота",
        "ko": "이 봇의 예산",
        "ja": "このボットの予算",
        "zh": "此机器人的预算",
    },
}
_USED_UP: Final[Mapping[str, str]] = {
    "en": "I cannot answer now: {whose} does not reach. It begins anew at {when} (UTC); /usage shows it.",
    "de": "Ich kann jetzt nicht antworten: {whose} reicht nicht mehr. Es beginnt neu um {when} (UTC); /usage zeigt es.",
    "es": "Ahora no puedo responder: {whose} no alcanza. Empieza de nuevo el {when} (UTC); /usage lo muestra.",
    "fr": "Je ne peux pas répondre : {whose} ne suffit plus. Il recommence le {when} (UTC) ; /usage le montre.",
    "it": "Ora non posso rispondere: {whose} non basta. Ricomincia il {when} (UTC); /usage lo mostra.",
    "pt": "Não posso responder agora: {whose} não é suficiente. Recomeça em {when} (UTC); veja /usage.",
    "ru": "Сейчас не могу ответить: {whose} исчерпан. Он обновится {when} (UTC); подробности: /usage.",
    "ko": "지금은 답할 수 없습니다: {whose} 부족. {when}(UTC)에 다시 시작됩니다. /usage 에서 볼 수 있습니다.",
    "ja": "今はお答えできません。{whose}が足りません。{when} (UTC) に新しくなります。/usage で確認できます。",
    "zh": "现在无法回答：{whose}不够了。{when}（UTC）重新开始；用 /usage 查看。",
}
_TOO_FAST: Final[Mapping[str, str]] = {
    "en": "That was a lot at once. I go on answering at {when} (UTC).",
    "de": "Das war viel auf einmal. Ich antworte wieder ab {when} (UTC).",
    "es": "Han sido muchos mensajes a la vez. Vuelvo a responder a las {when} (UTC).",
    "fr": "Cela fait beaucoup à la fois. Je répondrai de nouveau à {when} (UTC).",
    "it": "Troppi messaggi insieme. Riprendo a rispondere alle {when} (UTC).",
    "pt": "Foram muitas mensagens de uma vez. Volto a responder às {when} (UTC).",
    "ru": "Слишком много сообщений сразу. Я снова отвечу в {when} (UTC).",
    "ko": "메시지가 한꺼번에 너무 많습니다. {when}(UTC)에 다시 답하겠습니다.",
    "ja": "一度に多くのメッセージが届きました。{when} (UTC) からまたお答えします。",
    "zh": "消息一下子太多了。我会在 {when}（UTC）继续回答。",
}
_NEARLY: Final[Mapping[str, str]] = {
    "en": "(More than 80 % of {whose} is used. It begins anew at {when} (UTC); /usage shows it.)",
    "de": "(Mehr als 80 % sind verbraucht: {whose}. Es beginnt neu um {when} (UTC); /usage zeigt es.)",
    "es": "(Ya se ha usado más del 80 %: {whose}. Empieza de nuevo el {when} (UTC); /usage lo muestra.)",
    "fr": "(Plus de 80 % sont utilisés : {whose}. Il recommence le {when} (UTC) ; /usage le montre.)",
    "it": "(Usato più dell’80 %: {whose}. Ricomincia il {when} (UTC); /usage lo mostra.)",
    "pt": "(Mais de 80 % já foi usado: {whose}. Recomeça em {when} (UTC); veja /usage.)",
    "ru": "(Израсходовано более 80 %: {whose}. Он обновится {when} (UTC); подробности: /usage.)",
    "ko": "({whose}의 80 % 이상을 썼습니다. {when}(UTC)에 다시 시작됩니다. /usage 참고.)",
    "ja": "（{whose}の 80 % 以上を使いました。{when} (UTC) に新しくなります。/usage で確認できます。）",
    "zh": "（{whose}已用超过 80 %。{when}（UTC）重新开始；用 /usage 查看。）",
}


def used_up_text(scope: str, ends_at: datetime, language: str | None) -> str:
    """Return what a person is told whose question would take more than is left."""
    return _said(_USED_UP, scope, f"{ends_at:%Y-%m-%d %H:%M}", language)


def too_fast_text(ends_at: datetime, language: str | None) -> str:
    """Return what a person is told who writes more than is answered in a minute."""
    return _said(_TOO_FAST, Scope.PERSON, f"{ends_at:%H:%M}", language)


def nearly_used_text(scope: str, ends_at: datetime, language: str | None) -> str:
    """Return what a person is told below an answer when most of a budget is used."""
    return _said(_NEARLY, scope, f"{ends_at:%Y-%m-%d %H:%M}", language)


def _said(texts: Mapping[str, str], scope: str, when: str, language: str | None) -> str:
    chosen = language if language is not None and language in texts else _ENGLISH
    return texts[chosen].format(whose=_WHOSE[scope][chosen], when=when)
