"""What somebody is told who presses a button that does nothing for them, in ten languages."""

from typing import Final

from botservice.commands.command import Texts

NOT_ASKED: Final[Texts] = {
    "en": "These buttons are for whoever asked.",
    "de": "Diese Knöpfe sind für die Person, die gefragt hat.",
    "es": "Estos botones son para quien preguntó.",
    "fr": "Ces boutons sont pour la personne qui a posé la question.",
    "it": "Questi pulsanti sono per chi ha fatto la domanda.",
    "pt": "Estes botões são para quem perguntou.",
    "ru": "Эти кнопки — для того, кто спросил.",
    "ko": "이 버튼은 질문한 사람을 위한 것입니다.",
    "ja": "このボタンは質問した人のためのものです。",
    "zh": "这些按钮是给提问者的。",
}
GONE: Final[Texts] = {
    "en": "This button does nothing any more.",
    "de": "Dieser Knopf bewirkt nichts mehr.",
    "es": "Este botón ya no hace nada.",
    "fr": "Ce bouton ne fait plus rien.",
    "it": "Questo pulsante non fa più nulla.",
    "pt": "Este botão já não faz nada.",
    "ru": "Эта кнопка больше не действует.",
    "ko": "이 버튼은 더 이상 작동하지 않습니다.",
    "ja": "このボタンはもう使えません。",
    "zh": "这个按钮已失效。",
}
