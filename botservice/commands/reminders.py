"""/reminders: what waits in a chat, and cancelling it."""
# ruff: noqa: RUF001 - ten languages have their own signs

import re
from typing import Final

from sqlalchemy import Connection

from botservice.commands.command import Command, Texts, in_language
from botservice.messages import Button
from botservice.reminders.records import cancel_reminder, read_waiting
from botservice.reminders.reminder import Reminder, Repeats
from botservice.reminders.times import spell
from botservice.turns.commands import CommandAnswer, CommandRequest

_MOST_BUTTONS: Final = 8
_LONGEST_SHOWN: Final = 200  # characters of each text
_CANCEL: Final = re.compile(r"cancel\s+#?(\d{1,18})", re.IGNORECASE)

_MENU: Final[Texts] = {
    "en": "What I remind this chat of",
    "de": "Woran ich diesen Chat erinnere",
    "es": "Mis recordatorios en este chat",
    "fr": "Ce que je rappelle ici",
    "it": "Cosa ricordo a questa chat",
    "pt": "Meus lembretes nesta conversa",
    "ru": "О чём я напомню в этом чате",
    "ko": "이 대화의 알림 목록",
    "ja": "このチャットのリマインダー",
    "zh": "这个聊天里的提醒",
}
_NONE: Final[Texts] = {
    "en": "I remind this chat of nothing. Just ask me to, such as “remind me tomorrow at 9 to call Anna”.",
    "de": "Hier wartet keine Erinnerung. Bitte mich einfach darum, etwa „erinnere mich morgen um 9 an Annas Anruf“.",
    "es": "No hay recordatorios en este chat. Pídemelo, por ejemplo: «recuérdame mañana a las 9 llamar a Ana».",
    "fr": "Aucun rappel ici. Demandez-le-moi, par exemple : « rappelle-moi demain à 9 h d’appeler Anne ».",
    "it": "Nessun promemoria in questa chat. Chiedimelo, per esempio: «ricordami domani alle 9 di chiamare Anna».",
    "pt": "Não há lembretes nesta conversa. É só pedir: “lembre-me amanhã às 9 de ligar para a Ana”.",
    "ru": "В этом чате нет напоминаний. Просто попросите: «напомни завтра в 9 позвонить Анне».",
    "ko": "이 대화에는 알림이 없습니다. “내일 9시에 안나에게 전화하라고 알려 줘”처럼 말해 보세요.",
    "ja": "リマインダーはありません。「明日9時にアンナに電話とリマインドして」のように頼んでください。",
    "zh": "这个聊天里没有提醒。可以直接说：“明天九点提醒我给安娜打电话”。",
}
_LIST: Final[Texts] = {
    "en": "I remind this chat of:",
    "de": "Daran erinnere ich diesen Chat:",
    "es": "Recordatorios de este chat:",
    "fr": "Rappels de cette discussion :",
    "it": "Promemoria di questa chat:",
    "pt": "Lembretes desta conversa:",
    "ru": "Напоминания этого чата:",
    "ko": "이 대화의 알림:",
    "ja": "このチャットのリマインダー：",
    "zh": "这个聊天里的提醒：",
}
_CANCEL_BUTTON: Final[Texts] = {
    "en": "Cancel {number}",
    "de": "{number} absagen",
    "es": "Cancelar {number}",
    "fr": "Annuler {number}",
    "it": "Annulla {number}",
    "pt": "Cancelar {number}",
    "ru": "Отменить {number}",
    "ko": "{number} 취소",
    "ja": "{number} を取り消す",
    "zh": "取消 {number}",
}
_CANCELLED: Final[Texts] = {
    "en": "Cancelled: {text}",
    "de": "Abgesagt: {text}",
    "es": "Cancelado: {text}",
    "fr": "Annulé : {text}",
    "it": "Annullato: {text}",
    "pt": "Cancelado: {text}",
    "ru": "Отменено: {text}",
    "ko": "취소했습니다: {text}",
    "ja": "取り消しました：{text}",
    "zh": "已取消：{text}",
}
_UNKNOWN: Final[Texts] = {
    "en": "No reminder {number} waits here. /reminders lists them.",
    "de": "Hier wartet keine Erinnerung {number}. /reminders zählt sie auf.",
    "es": "Aquí no hay ningún recordatorio {number}. /reminders los muestra.",
    "fr": "Il n’y a pas de rappel {number} ici. /reminders les affiche.",
    "it": "Qui non c’è il promemoria {number}. /reminders li elenca.",
    "pt": "Não há lembrete {number} aqui. /reminders mostra todos.",
    "ru": "Напоминания {number} здесь нет. /reminders покажет все.",
    "ko": "{number}번 알림이 없습니다. /reminders 로 목록을 볼 수 있습니다.",
    "ja": "リマインダー {number} はありません。/reminders で一覧を見られます。",
    "zh": "这里没有提醒 {number}。/reminders 会列出所有提醒。",
}
_REPEATS: Final[dict[Repeats, Texts]] = {
    Repeats.DAILY: {
        "en": "every day",
        "de": "jeden Tag",
        "es": "cada día",
        "fr": "chaque jour",
        "it": "ogni giorno",
        "pt": "todos os dias",
        "ru": "каждый день",
        "ko": "매일",
        "ja": "毎日",
        "zh": "每天",
    },
    Repeats.WEEKDAYS: {
        "en": "Monday to Friday",
        "de": "Montag bis Freitag",
        "es": "de lunes a viernes",
        "fr": "du lundi au vendredi",
        "it": "dal lunedì al venerdì",
        "pt": "de segunda a sexta",
        "ru": "с понедельника по пятницу",
        "ko": "월요일부터 금요일까지",
        "ja": "月曜から金曜",
        "zh": "周一至周五",
    },
    Repeats.WEEKLY: {
        "en": "every week",
        "de": "jede Woche",
        "es": "cada semana",
        "fr": "chaque semaine",
        "it": "ogni settimana",
        "pt": "toda semana",
        "ru": "каждую неделю",
        "ko": "매주",
        "ja": "毎週",
        "zh": "每周",
    },
}


async def _answer(request: CommandRequest) -> CommandAnswer:
    context_id = request.context.id
    waiting = await request.context.storage.read(lambda connection: read_waiting(connection, context_id))
    wanted = _CANCEL.fullmatch(request.call.arguments)
    if wanted is not None:
        return _cancel(request, waiting, int(wanted[1]))
    if not waiting:
        return CommandAnswer(in_language(_NONE, request.language))
    lines = [_line(each, request.language) for each in waiting]
    buttons = [
        Button(
            in_language(_CANCEL_BUTTON, request.language).format(number=each.id),
            f"/{REMINDERS.name} cancel {each.id}",
        )
        for each in waiting[:_MOST_BUTTONS]
    ]
    text = "\n\n".join([in_language(_LIST, request.language), "\n".join(lines)])
    return CommandAnswer(text, tuple(buttons))


def _cancel(request: CommandRequest, waiting: list[Reminder], number: int) -> CommandAnswer:
    found = next((each for each in waiting if each.id == number), None)
    if found is None:
        return CommandAnswer(in_language(_UNKNOWN, request.language).format(number=number))

    def apply(connection: Connection) -> None:
        cancel_reminder(connection, request.context.id, number, request.now)

    return CommandAnswer(in_language(_CANCELLED, request.language).format(text=_cut(found.text)), apply=apply)


def _line(reminder: Reminder, language: str) -> str:
    again = "" if reminder.repeats is None else f", {in_language(_REPEATS[reminder.repeats], language)}"
    return f"- **{reminder.id}** · {spell(reminder.due_at, reminder.time_zone)}{again} · {_cut(reminder.text)}"


def _cut(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST_SHOWN else f"{flat[:_LONGEST_SHOWN]}…"


REMINDERS: Final = Command("reminders", _MENU, _answer)
