"""What /forget says, in ten languages."""
# ruff: noqa: RUF001 - ten languages have their own signs

from typing import Final

from botservice.commands.command import Texts

MENU: Final[Texts] = {
    "en": "Forget a message, this chat, or everything about me",
    "de": "Eine Nachricht, diesen Chat oder alles über mich vergessen",
    "es": "Olvidar un mensaje, este chat o todo sobre mí",
    "fr": "Oublier un message, cette discussion ou tout sur moi",
    "it": "Dimenticare un messaggio, questa chat o tutto su di me",
    "pt": "Esquecer uma mensagem, esta conversa ou tudo sobre mim",
    "ru": "Забыть сообщение, этот чат или всё обо мне",
    "ko": "메시지, 이 대화, 또는 나에 대한 모든 것 잊기",
    "ja": "メッセージ、このチャット、または私のすべてを忘れる",
    "zh": "忘记一条消息、这个聊天或关于我的一切",
}
WHAT: Final[Texts] = {
    "en": "What shall I forget? (/forget message, /forget chat, /forget me; as a reply to a message: that one)",
    "de": "Was soll ich vergessen? (/forget message, /forget chat, /forget me; als Antwort auf eine Nachricht: diese)",
    "es": "¿Qué debo olvidar? (/forget message, /forget chat, /forget me; en respuesta a un mensaje: ese)",
    "fr": "Que dois-je oublier ? (/forget message, /forget chat, /forget me ; en réponse à un message : celui-là)",
    "it": "Cosa devo dimenticare? (/forget message, /forget chat, /forget me; in risposta a un messaggio: quello)",
    "pt": "O que devo esquecer? (/forget message, /forget chat, /forget me; em resposta a uma mensagem: essa)",
    "ru": "Что мне забыть? (/forget message, /forget chat, /forget me; в ответ на сообщение — его)",
    "ko": "무엇을 잊을까요? (/forget message, /forget chat, /forget me; 메시지에 답장하면 그 메시지)",
    "ja": "何を忘れますか。(/forget message, /forget chat, /forget me；返信として送ればそのメッセージ)",
    "zh": "要我忘记什么？(/forget message、/forget chat、/forget me；回复一条消息则忘记那条)",
}
MESSAGE_BUTTON: Final[Texts] = {
    "en": "My last message",
    "de": "Meine letzte Nachricht",
    "es": "Mi último mensaje",
    "fr": "Mon dernier message",
    "it": "Il mio ultimo messaggio",
    "pt": "Minha última mensagem",
    "ru": "Моё последнее сообщение",
    "ko": "내 마지막 메시지",
    "ja": "最後のメッセージ",
    "zh": "我的上一条消息",
}
CHAT_BUTTON: Final[Texts] = {
    "en": "This chat",
    "de": "Diesen Chat",
    "es": "Este chat",
    "fr": "Cette discussion",
    "it": "Questa chat",
    "pt": "Esta conversa",
    "ru": "Этот чат",
    "ko": "이 대화",
    "ja": "このチャット",
    "zh": "这个聊天",
}
ME_BUTTON: Final[Texts] = {
    "en": "Everything about me",
    "de": "Alles über mich",
    "es": "Todo sobre mí",
    "fr": "Tout sur moi",
    "it": "Tutto su di me",
    "pt": "Tudo sobre mim",
    "ru": "Всё обо мне",
    "ko": "나에 대한 모든 것",
    "ja": "私のすべて",
    "zh": "关于我的一切",
}
ASK_MESSAGE: Final[Texts] = {
    "en": "Shall I forget “{said}”, with my answer to it, my notes since then and what I learned of you by it? "
    "There is "
    "no way back. To confirm: {confirm}",
    "de": "Soll ich „{said}“ vergessen, mit meiner Antwort darauf, meinen Notizen seitdem und was ich daraus über dich "
    "weiß? Es gibt kein Zurück. Zum Bestätigen: {confirm}",
    "es": "¿Olvido «{said}», con mi respuesta, mis notas desde entonces y lo que aprendí de ti por ello? No hay vuelta "
    "atrás. Para confirmar: {confirm}",
    "fr": "Dois-je oublier « {said} », avec ma réponse, mes notes depuis et ce que j’en ai appris sur vous ? C’est "
    "sans "
    "retour. Pour confirmer : {confirm}",
    "it": "Dimentico «{said}», con la mia risposta, i miei appunti da allora e ciò che ne so di te? Non si torna "
    "indietro. "
    "Per confermare: {confirm}",
    "pt": "Esqueço “{said}”, com minha resposta, minhas notas desde então e o que aprendi sobre você com isso? Não há "
    "volta. Para confirmar: {confirm}",
    "ru": "Забыть «{said}», мой ответ, мои записи с тех пор и то, что я из этого о вас узнал? Вернуть будет нельзя. "
    "Подтвердить: {confirm}",
    "ko": "“{said}” 와 그 답변, 그 이후의 기록, 그로부터 알게 된 것을 잊을까요? 되돌릴 수 없습니다. 확인: {confirm}",
    "ja": "「{said}」と、その返事、以後の記録、そこから知ったことを忘れますか。元には戻せません。確認：{confirm}",
    "zh": "要我忘记“{said}”、我的回答、此后的记录以及由此了解到的事吗？无法恢复。确认：{confirm}",
}
ASK_CHAT: Final[Texts] = {
    "en": "Shall I forget this whole chat: every message, answer, file, reminder, and what I learned of you here? "
    "There is "
    "no way back. To confirm: {confirm}",
    "de": "Soll ich diesen ganzen Chat vergessen: jede Nachricht, Antwort, Datei, Erinnerung und was ich hier über "
    "dich "
    "erfuhr? Es gibt kein Zurück. Zum Bestätigen: {confirm}",
    "es": "¿Olvido todo este chat: cada mensaje, respuesta, archivo, recordatorio y lo que aquí supe de ti? No hay "
    "vuelta "
    "atrás. Para confirmar: {confirm}",
    "fr": "Dois-je oublier toute cette discussion : messages, réponses, fichiers, rappels et ce que j’y ai appris sur "
    "vous ? C’est sans retour. Pour confirmer : {confirm}",
    "it": "Dimentico tutta questa chat: messaggi, risposte, file, promemoria e ciò che qui ho saputo di te? Non si "
    "torna "
    "indietro. Per confermare: {confirm}",
    "pt": "Esqueço toda esta conversa: mensagens, respostas, arquivos, lembretes e o que soube de você aqui? Não há "
    "volta. "
    "Para confirmar: {confirm}",
    "ru": "Забыть весь этот чат: сообщения, ответы, файлы, напоминания и то, что я здесь о вас узнал? Вернуть будет "
    "нельзя. Подтвердить: {confirm}",
    "ko": "이 대화의 모든 메시지, 답변, 파일, 알림과 여기서 알게 된 것을 잊을까요? 되돌릴 수 없습니다. 확인: {confirm}",
    "ja": "このチャットのメッセージ、返事、ファイル、リマインダー、ここで知ったことをすべて忘れますか。"
    "元には戻せません。"
    "確認：{confirm}",
    "zh": "要我忘记整个聊天吗：所有消息、回答、文件、提醒，以及在此了解到的事？无法恢复。确认：{confirm}",
}
ASK_MINE: Final[Texts] = {
    "en": "Others write here too. Shall I forget all that you wrote in this chat, with my answers to it? What "
    "others said "
    "stays. There is no way back. To confirm: {confirm}",
    "de": "Hier schreiben auch andere. Soll ich alles vergessen, was du in diesem Chat geschrieben hast, mit meinen "
    "Antworten darauf? Was andere sagten, bleibt. Es gibt kein Zurück. Zum Bestätigen: {confirm}",
    "es": "Aquí escriben también otros. ¿Olvido todo lo que escribiste en este chat, con mis respuestas? Lo que "
    "dijeron "
    "otros queda. No hay vuelta atrás. Para confirmar: {confirm}",
    "fr": "D’autres écrivent ici aussi. Dois-je oublier tout ce que vous avez écrit ici, avec mes réponses ? Ce que "
    "d’autres ont dit reste. C’est sans retour. Pour confirmer : {confirm}",
    "it": "Qui scrivono anche altri. Dimentico tutto ciò che hai scritto in questa chat, con le mie risposte? Ciò che "
    "hanno detto altri resta. Non si torna indietro. Per confermare: {confirm}",
    "pt": "Outros também escrevem aqui. Esqueço tudo o que você escreveu nesta conversa, com minhas respostas? O que "
    "outros disseram fica. Não há volta. Para confirmar: {confirm}",
    "ru": "Здесь пишут и другие. Забыть всё, что вы написали в этом чате, и мои ответы на это? Сказанное другими "
    "останется. Вернуть будет нельзя. Подтвердить: {confirm}",
    "ko": "여기에는 다른 사람도 씁니다. 당신이 쓴 모든 것과 그 답변을 잊을까요? 다른 사람의 말은 남습니다. 되돌릴 수 "
    "없습니다. 확인: {confirm}",
    "ja": "ここには他の人も書いています。あなたが書いたすべてとその返事を忘れますか。他の人の発言は残ります。"
    "元には戻せません。確認：{confirm}",
    "zh": "这里还有别人。要我忘记你在这个聊天里写的一切以及我的回答吗？别人说的会保留。无法恢复。确认：{confirm}",
}
ASK_ME: Final[Texts] = {
    "en": "Shall I forget everything about you, in every chat and every linked account: what you wrote, what I "
    "answered, "
    "your files, reminders, and all that I know of you? /export gives you a copy first. There is no way back. To "
    "confirm: "
    "{confirm}",
    "de": "Soll ich alles über dich vergessen, in jedem Chat und jedem verknüpften Konto: was du schriebst, was ich "
    "antwortete, deine Dateien, Erinnerungen und alles, was ich über dich weiß? /export gibt dir vorher eine Kopie. Es "
    "gibt kein Zurück. Zum Bestätigen: {confirm}",
    "es": "¿Olvido todo sobre ti, en cada chat y cada cuenta vinculada: lo que escribiste, lo que respondí, tus "
    "archivos, "
    "recordatorios y todo lo que sé de ti? /export te da antes una copia. No hay vuelta atrás. Para confirmar: "
    "{confirm}",
    "fr": "Dois-je tout oublier de vous, dans chaque discussion et chaque compte lié : vos messages, mes réponses, vos "
    "fichiers, rappels et tout ce que je sais de vous ? /export vous en donne d’abord une copie. C’est sans retour. "
    "Pour "
    "confirmer : {confirm}",
    "it": "Dimentico tutto di te, in ogni chat e ogni account collegato: ciò che hai scritto, ciò che ho risposto, "
    "i tuoi "
    "file, promemoria e tutto ciò che so di te? /export te ne dà prima una copia. Non si torna indietro. Per "
    "confermare: "
    "{confirm}",
    "pt": "Esqueço tudo sobre você, em cada conversa e conta vinculada: o que escreveu, o que respondi, seus arquivos, "
    "lembretes e tudo o que sei? /export dá uma cópia antes. Não há volta. Para confirmar: {confirm}",
    "ru": "Забыть всё о вас, во всех чатах и связанных учётных записях: что вы писали, что я отвечал, файлы, "
    "напоминания "
    "и всё, что я о вас знаю? /export сначала даст копию. Вернуть будет нельзя. Подтвердить: {confirm}",
    "ko": "모든 대화와 연결된 계정에서 당신에 대한 모든 것(쓴 글, 답변, 파일, 알림, 아는 것)을 잊을까요? 먼저 "
    "/export 로 "
    "사본을 받을 수 있습니다. 되돌릴 수 없습니다. 확인: {confirm}",
    "ja": "すべてのチャットと連携したアカウントで、書いたこと、返事、ファイル、リマインダー、"
    "知っていることをすべて忘れますか。"
    "先に /export で写しを受け取れます。元には戻せません。確認：{confirm}",
    "zh": "要我在所有聊天和关联账户里忘记关于你的一切吗：你写的、我答的、文件、提醒和我知道的一切？可先用 /export "
    "取得副本。"
    "无法恢复。确认：{confirm}",
}
YES_BUTTON: Final[Texts] = {
    "en": "Yes, forget it",
    "de": "Ja, vergiss es",
    "es": "Sí, olvídalo",
    "fr": "Oui, oubliez",
    "it": "Sì, dimentica",
    "pt": "Sim, esqueça",
    "ru": "Да, забыть",
    "ko": "네, 잊어 주세요",
    "ja": "はい、忘れてください",
    "zh": "是的，忘记吧",
}
DONE: Final[Texts] = {
    "en": "Forgotten.",
    "de": "Vergessen.",
    "es": "Olvidado.",
    "fr": "Oublié.",
    "it": "Dimenticato.",
    "pt": "Esquecido.",
    "ru": "Забыто.",
    "ko": "잊었습니다.",
    "ja": "忘れました。",
    "zh": "已忘记。",
}
NO_MESSAGE: Final[Texts] = {
    "en": "I find no message of yours here that I could forget.",
    "de": "Ich finde hier keine Nachricht von dir, die ich vergessen könnte.",
    "es": "No encuentro aquí ningún mensaje tuyo que pueda olvidar.",
    "fr": "Je ne trouve ici aucun message de vous que je pourrais oublier.",
    "it": "Non trovo qui nessun tuo messaggio da dimenticare.",
    "pt": "Não encontro aqui nenhuma mensagem sua para esquecer.",
    "ru": "Не нахожу здесь вашего сообщения, которое можно забыть.",
    "ko": "여기서 잊을 당신의 메시지를 찾을 수 없습니다.",
    "ja": "ここには忘れられるあなたのメッセージがありません。",
    "zh": "在这里找不到可以忘记的你的消息。",
}
IN_PRIVATE: Final[Texts] = {
    "en": "Everything about you is between you and me: write /forget me to me in a private chat.",
    "de": "Alles über dich ist zwischen dir und mir: Schreib mir /forget me in einem privaten Chat.",
    "es": "Todo sobre ti queda entre tú y yo: escríbeme /forget me en un chat privado.",
    "fr": "Tout ce qui vous concerne reste entre nous : écrivez-moi /forget me en privé.",
    "it": "Tutto su di te resta tra noi: scrivimi /forget me in privato.",
    "pt": "Tudo sobre você fica entre nós: escreva /forget me para mim em particular.",
    "ru": "Всё о вас — только между нами: напишите мне /forget me в личном чате.",
    "ko": "당신에 대한 모든 것은 우리 둘만의 일입니다. 개인 대화에서 /forget me 라고 보내 주세요.",
    "ja": "あなたのすべては二人だけの話です。個人チャットで /forget me と送ってください。",
    "zh": "关于你的一切只在我们之间：请在私聊里给我发 /forget me。",
}
NOTHING_KEPT: Final[Texts] = {
    "en": "I keep nothing about you.",
    "de": "Ich bewahre nichts über dich auf.",
    "es": "No guardo nada sobre ti.",
    "fr": "Je ne garde rien sur vous.",
    "it": "Non conservo nulla su di te.",
    "pt": "Não guardo nada sobre você.",
    "ru": "Я ничего о вас не храню.",
    "ko": "당신에 대해 보관하는 것이 없습니다.",
    "ja": "あなたについて保管しているものはありません。",
    "zh": "我没有保存任何关于你的信息。",
}
