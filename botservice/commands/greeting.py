"""/start, /help and /stop."""
# ruff: noqa: RUF001 - ten languages have their own signs

from collections.abc import Callable, Sequence
from typing import Final

from botservice.commands.command import Command, Texts, in_language
from botservice.turns.commands import CommandAnswer, CommandRequest

_START: Final[Texts] = {
    "en": "Hello! Write to me, or send me a picture, a voice message or a file. I remember this chat. "
    "/help says what else I can do.",
    "de": "Hallo! Schreib mir, oder schick mir ein Bild, eine Sprachnachricht oder eine Datei. Ich merke mir diesen "
    "Chat. /help sagt, was ich sonst noch kann.",
    "es": "¡Hola! Escríbeme o envíame una imagen, un mensaje de voz o un archivo. Recuerdo este chat. "
    "/help dice qué más sé hacer.",
    "fr": "Bonjour ! Écrivez-moi, ou envoyez-moi une image, un message vocal ou un fichier. Je me souviens de cette "
    "discussion. /help dit ce que je sais faire d’autre.",
    "it": "Ciao! Scrivimi, oppure mandami un’immagine, un messaggio vocale o un file. Ricordo questa chat. "
    "/help dice cos’altro so fare.",
    "pt": "Olá! Escreva para mim ou envie uma imagem, uma mensagem de voz ou um arquivo. Eu me lembro desta conversa. "
    "/help diz o que mais sei fazer.",
    "ru": "Здравствуйте! Напишите мне или пришлите картинку, голосовое сообщение или файл. Я помню этот чат. "
    "/help расскажет, что ещё я умею.",
    "ko": "안녕하세요! 메시지나 사진, 음성 메시지, 파일을 보내 주세요. 이 대화를 기억합니다. "
    "/help 에서 더 볼 수 있습니다.",
    "ja": "こんにちは。メッセージや画像、音声、ファイルを送ってください。"
    "このチャットを覚えています。できることは /help で。",
    "zh": "你好！给我发消息、图片、语音或文件吧。我会记住这个聊天。/help 会告诉你我还能做什么。",
}
_HELP: Final[Texts] = {
    "en": "Just write. In a group, mention me or reply to me.",
    "de": "Schreib einfach. In einer Gruppe erwähne mich oder antworte mir.",
    "es": "Simplemente escribe. En un grupo, mencióname o respóndeme.",
    "fr": "Écrivez, tout simplement. Dans un groupe, mentionnez-moi ou répondez-moi.",
    "it": "Scrivi e basta. In un gruppo, menzionami o rispondimi.",
    "pt": "É só escrever. Em um grupo, mencione-me ou responda a mim.",
    "ru": "Просто пишите. В группе упомяните меня или ответьте на моё сообщение.",
    "ko": "그냥 쓰시면 됩니다. 그룹에서는 저를 멘션하거나 제 메시지에 답장하세요.",
    "ja": "そのまま書いてください。グループではメンションするか、私に返信してください。",
    "zh": "直接写就行。在群组里请提及我或回复我。",
}
_START_MENU: Final[Texts] = {
    "en": "Say hello",
    "de": "Sag Hallo",
    "es": "Saludar",
    "fr": "Dire bonjour",
    "it": "Saluta",
    "pt": "Dizer olá",
    "ru": "Поздороваться",
    "ko": "인사하기",
    "ja": "あいさつ",
    "zh": "打个招呼",
}
_HELP_MENU: Final[Texts] = {
    "en": "What I can do",
    "de": "Was ich kann",
    "es": "Lo que sé hacer",
    "fr": "Ce que je sais faire",
    "it": "Cosa so fare",
    "pt": "O que sei fazer",
    "ru": "Что я умею",
    "ko": "할 수 있는 일",
    "ja": "できること",
    "zh": "我能做什么",
}
_STOP_MENU: Final[Texts] = {
    "en": "Stop the answer that I am writing",
    "de": "Die Antwort abbrechen, die ich gerade schreibe",
    "es": "Detener la respuesta en curso",
    "fr": "Arrêter la réponse en cours",
    "it": "Ferma la risposta in corso",
    "pt": "Parar a resposta em andamento",
    "ru": "Остановить ответ, который я пишу",
    "ko": "작성 중인 답변 멈추기",
    "ja": "書いている回答を止める",
    "zh": "停止正在写的回答",
}


async def _start(request: CommandRequest) -> CommandAnswer:
    return CommandAnswer(in_language(_START, request.language))


START: Final = Command("start", _START_MENU, _start)
# A transport takes it in: it does not queue behind what it is to stop.
STOP: Final = Command("stop", _STOP_MENU)


def help_command(menu: Callable[[str], Sequence[tuple[str, str]]]) -> Command:
    """Return the command that lists the others; menu gives their names and descriptions in a language."""

    async def answer(request: CommandRequest) -> CommandAnswer:
        lines = [f"/{name} – {description}" for name, description in menu(request.language)]
        return CommandAnswer("\n\n".join([in_language(_HELP, request.language), "\n".join(lines)]))

    return Command("help", _HELP_MENU, answer)
