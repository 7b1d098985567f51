"""What /forget says it has deleted, and what remains, in ten languages. Numbers follow what they count: no plurals."""
# ruff: noqa: RUF001 - ten languages have their own signs

from typing import Final

from botservice.commands.command import Texts, in_language
from botservice.people.accounting import Forgotten

DELETED: Final[Texts] = {
    "en": "Deleted: {what}.",
    "de": "Gelöscht: {what}.",
    "es": "Borrado: {what}.",
    "fr": "Supprimé : {what}.",
    "it": "Eliminato: {what}.",
    "pt": "Apagado: {what}.",
    "ru": "Удалено: {what}.",
    "ko": "삭제됨: {what}.",
    "ja": "削除しました：{what}。",
    "zh": "已删除：{what}。",
}
# Chats that went whole, messages of people, answers, files, facts, reminders.
_NAMES: Final[Texts] = {
    "en": "whole chats, messages, answers, files, facts, reminders",
    "de": "ganze Chats, Nachrichten, Antworten, Dateien, Fakten, Erinnerungen",
    "es": "chats enteros, mensajes, respuestas, archivos, datos, recordatorios",
    "fr": "discussions entières, messages, réponses, fichiers, faits, rappels",
    "it": "chat intere, messaggi, risposte, file, fatti, promemoria",
    "pt": "conversas inteiras, mensagens, respostas, arquivos, fatos, lembretes",
    "ru": "чаты целиком, сообщения, ответы, файлы, факты, напоминания",
    "ko": "전체 대화, 메시지, 답변, 파일, 사실, 알림",
    "ja": "チャット全体, メッセージ, 返事, ファイル, 事実, リマインダー",
    "zh": "整个聊天, 消息, 回答, 文件, 事实, 提醒",
}
OTHERS_STAY: Final[Texts] = {
    "en": "What others said themselves remains.",
    "de": "Was andere selbst gesagt haben, bleibt.",
    "es": "Queda lo que dijeron los demás.",
    "fr": "Ce que les autres ont dit eux-mêmes reste.",
    "it": "Resta ciò che hanno detto gli altri.",
    "pt": "Fica o que os outros disseram.",
    "ru": "То, что говорили сами другие, остаётся.",
    "ko": "다른 사람이 직접 한 말은 남습니다.",
    "ja": "ほかの人自身の発言は残ります。",
    "zh": "其他人自己说的话会保留。",
}
PERSON_STAYS: Final[Texts] = {
    "en": "These remain: what others said themselves; your number with this month’s sums of tokens until the month is "
    "over, with this chat for up to four hours, and with what the owner decided about letting you or a group in.",
    "de": "Es bleiben: was andere selbst gesagt haben; deine Nummer bei den Token-Summen dieses Monats, bis er vorbei "
    "ist, bei diesem Chat bis zu vier Stunden und bei dem, was der Betreiber über deinen Einlass oder den einer Gruppe "
    "entschied.",
    "es": "Quedan: lo que dijeron los demás; tu número en las sumas de tokens de este mes hasta que acabe, en este "
    "chat hasta cuatro horas, y en lo que el dueño decidió sobre dejarte entrar a ti o a un grupo.",
    "fr": "Restent : ce que les autres ont dit eux-mêmes ; votre numéro dans les sommes de jetons de ce mois jusqu’à "
    "sa fin, dans cette discussion pendant quatre heures au plus, et dans ce que le propriétaire a décidé sur votre "
    "accès ou celui d’un groupe.",
    "it": "Restano: ciò che hanno detto gli altri; il tuo numero nelle somme di token di questo mese fino alla sua "
    "fine, in questa chat per quattro ore al massimo, e in ciò che il gestore ha deciso sull’accesso tuo o di un "
    "gruppo.",
    "pt": "Ficam: o que os outros disseram; seu número nas somas de tokens deste mês até ele acabar, nesta conversa "
    "por até quatro horas, e no que o dono decidiu sobre a sua entrada ou a de um grupo.",
    "ru": "Остаются: то, что говорили сами другие; ваш номер — в суммах токенов этого месяца до его конца, в этом чате "
    "до четырёх часов и в решениях владельца о допуске вас или группы.",
    "ko": "남는 것: 다른 사람이 직접 한 말. 그리고 번호는 이번 달이 끝날 때까지 토큰 합계에, 최대 네 시간 동안 이 "
    "대화에, 본인이나 그룹의 허용에 대한 소유자의 결정에 남습니다.",
    "ja": "残るもの：ほかの人自身の発言。また、あなたの番号は、月末まで今月のトークン合計に、最長4時間このチャットに、"
    "あなたやグループの許可についての運営者の決定に残ります。",
    "zh": "保留的有：其他人自己说的话；你的编号会留在本月的 token 总数中直到月底，留在这个聊天中最多四小时，"
    "以及留在所有者关于是否让你或群组进来的决定中。",
}
TRACES: Final[Texts] = {
    "en": "The last traces leave the database’s files at its next clean-up.",
    "de": "Die letzten Spuren verlassen die Dateien der Datenbank beim nächsten Aufräumen.",
    "es": "Los últimos rastros saldrán de los archivos de la base de datos en la próxima limpieza.",
    "fr": "Les dernières traces quitteront les fichiers de la base de données à son prochain nettoyage.",
    "it": "Le ultime tracce lasceranno i file del database alla prossima pulizia.",
    "pt": "Os últimos vestígios sairão dos arquivos do banco de dados na próxima limpeza.",
    "ru": "Последние следы исчезнут из файлов базы данных при следующей очистке.",
    "ko": "마지막 흔적은 데이터베이스의 다음 정리 때 파일에서 사라집니다.",
    "ja": "最後の痕跡は、データベースの次の整理でファイルから消えます。",
    "zh": "最后的痕迹会在数据库下次清理时离开其文件。",
}
ELSEWHERE: Final[Texts] = {
    "en": "What this app itself still shows is yours to delete there; backups are with whoever runs me.",
    "de": "Was diese App selbst noch zeigt, kannst du dort löschen; Sicherungen liegen bei dem, der mich betreibt.",
    "es": "Lo que esta app aún muestra puedes borrarlo en ella; las copias de seguridad las tiene quien me administra.",
    "fr": "Ce que cette application montre encore, vous pouvez l’y effacer ; les sauvegardes sont chez qui "
    "m’administre.",
    "it": "Ciò che questa app mostra ancora puoi cancellarlo lì; i backup sono di chi mi gestisce.",
    "pt": "O que este aplicativo ainda mostra você pode apagar nele; os backups estão com quem me administra.",
    "ru": "То, что ещё показывает само приложение, можно удалить в нём; резервные копии — у того, кто мной управляет.",
    "ko": "이 앱에 아직 보이는 것은 앱에서 직접 지울 수 있습니다. 백업은 운영자에게 있습니다.",
    "ja": "このアプリにまだ表示されているものは、アプリで削除できます。バックアップは運営者にあります。",
    "zh": "这个应用里仍显示的内容可由你自行删除；备份在管理我的人那里。",
}


def account_of(gone: Forgotten, language: str) -> str:
    """Return what was deleted, such as "Deleted: messages: 3, answers: 2."; nothing where that is nothing."""
    counts = (gone.contexts, gone.messages, gone.answers, gone.files, gone.facts, gone.reminders)
    names = in_language(_NAMES, language).split(", ")
    parts = [f"{name}: {count}" for name, count in zip(names, counts, strict=True) if count]
    return in_language(DELETED, language).format(what=", ".join(parts)) if parts else ""
