"""What people are told who are not let in, or who are let in, in ten languages."""
# ruff: noqa: RUF001 - ten languages have their own signs

from collections.abc import Mapping
from typing import Final

from botservice.people.access_values import Notice, Ruling

_ENGLISH: Final = "en"
_REFUSED: Final[Mapping[str, str]] = {
    "en": "Sorry, I am not here for everybody. Whoever runs me can let you in: you are {name}.",
    "de": "Entschuldige, ich bin nicht für alle da. Wer mich betreibt, kann dich einlassen: du bist {name}.",
    "es": "Lo siento, no estoy abierto a todos. Quien me administra puede dejarte entrar: eres {name}.",
    "fr": "Désolé, je ne suis pas ouvert à tous. Qui m’administre peut vous laisser entrer : vous êtes {name}.",
    "it": "Mi dispiace, non sono aperto a tutti. Chi mi gestisce può farti entrare: tu sei {name}.",
    "pt": "Desculpe, não estou aberto a todos. Quem me administra pode deixar você entrar: você é {name}.",
    "ru": "Извините, я доступен не всем. Тот, кто мной управляет, может вас впустить: вы {name}.",
    "ko": "죄송합니다. 저는 모두에게 열려 있지 않습니다. 운영자가 허용할 수 있습니다: {name}",
    "ja": "申し訳ありません。どなたでも使えるわけではありません。運営者が許可できます：{name}",
    "zh": "抱歉，我并不对所有人开放。管理我的人可以让你进来：你是 {name}。",
}
_CODE: Final[Mapping[str, str]] = {
    "en": "Hello! I do not know you yet. Give this code to whoever runs me: {code}. It is good for an hour; "
    "/start gives you another one.",
    "de": "Hallo! Ich kenne dich noch nicht. Gib diesen Code dem, der mich betreibt: {code}. Er gilt eine Stunde; "
    "/start gibt dir einen neuen.",
    "es": "¡Hola! Aún no te conozco. Da este código a quien me administra: {code}. Vale una hora; /start te da otro.",
    "fr": "Bonjour ! Je ne vous connais pas encore. Donnez ce code à qui m’administre : {code}. Il vaut une heure ; "
    "/start en donne un autre.",
    "it": "Ciao! Non ti conosco ancora. Dai questo codice a chi mi gestisce: {code}. Vale un’ora; "
    "/start te ne dà un altro.",
    "pt": "Olá! Ainda não conheço você. Dê este código a quem me administra: {code}. Vale por uma hora; "
    "/start dá outro.",
    "ru": "Здравствуйте! Я вас ещё не знаю. Передайте этот код тому, кто мной управляет: {code}. Он действует час; "
    "/start даст новый.",
    "ko": "안녕하세요! 아직 모르는 분이네요. 이 코드를 운영자에게 전해 주세요: {code}. 한 시간 동안 유효하며, "
    "/start 로 새로 받을 수 있습니다.",
    "ja": "こんにちは。まだ存じ上げません。このコードを運営者に伝えてください：{code}。1時間有効です。"
    "/start で新しいコードが出ます。",
    "zh": "你好！我还不认识你。请把这个代码交给管理我的人：{code}。一小时内有效；/start 可获取新的代码。",
}
_GROUP: Final[Mapping[str, str]] = {
    "en": "Sorry, nobody whom I know has brought me here. Somebody whom I know can say /approve; until then I keep "
    "quiet, and keep nothing of what is said.",
    "de": "Entschuldigt, niemand, den ich kenne, hat mich hierher geholt. Wer mich kennt, kann /approve sagen; bis "
    "dahin bin ich still und behalte nichts.",
    "es": "Lo siento, nadie que yo conozca me ha traído aquí. Alguien que conozco puede decir /approve; hasta "
    "entonces callo y no guardo nada.",
    "fr": "Désolé, personne que je connais ne m’a amené ici. Quelqu’un que je connais peut dire /approve ; d’ici là, "
    "je me tais et ne garde rien.",
    "it": "Mi dispiace, nessuno che conosco mi ha portato qui. Qualcuno che conosco può dire /approve; fino ad "
    "allora taccio e non conservo nulla.",
    "pt": "Desculpe, ninguém que eu conheça me trouxe aqui. Alguém que conheço pode dizer /approve; até lá fico em "
    "silêncio e não guardo nada.",
    "ru": "Извините, меня сюда привёл кто-то, кого я не знаю. Тот, кого я знаю, может написать /approve; до тех пор "
    "я молчу и ничего не храню.",
    "ko": "죄송합니다. 제가 아는 분이 초대하지 않았습니다. 제가 아는 분이 /approve 라고 하면 됩니다. 그때까지는 "
    "조용히 있고 아무것도 저장하지 않습니다.",
    "ja": "申し訳ありません。知っている人に招かれていません。知っている人が /approve と言えば始めます。"
    "それまでは黙って、何も保存しません。",
    "zh": "抱歉，带我来的人我不认识。我认识的人可以说 /approve；在那之前我保持安静，也不保存任何内容。",
}
_WELCOME: Final[Mapping[str, str]] = {
    "en": "You are let in. Write to me!",
    "de": "Du bist eingelassen. Schreib mir!",
    "es": "Ya puedes entrar. ¡Escríbeme!",
    "fr": "Vous pouvez entrer. Écrivez-moi !",
    "it": "Puoi entrare. Scrivimi!",
    "pt": "Você pode entrar. Escreva para mim!",
    "ru": "Вас впустили. Пишите!",
    "ko": "들어오실 수 있습니다. 메시지를 보내 주세요!",
    "ja": "許可されました。どうぞ書いてください。",
    "zh": "你可以进来了。给我写消息吧！",
}
_TEXTS: Final = {Notice.REFUSED: _REFUSED, Notice.CODE: _CODE, Notice.GROUP: _GROUP}


def refusal_text(ruling: Ruling, language: str | None) -> str:
    """Return what somebody is told who is not let in; empty for nothing."""
    texts = _TEXTS.get(ruling.notice)
    if texts is None:
        return ""
    name = ruling.subject.name if ruling.subject is not None else "?"
    return _chosen(texts, language).format(name=name, code=ruling.code)


def welcome_text(language: str | None) -> str:
    """Return what somebody is told who is let in."""
    return _chosen(_WELCOME, language)


def _chosen(texts: Mapping[str, str], language: str | None) -> str:
    code = (language or _ENGLISH).partition("-")[0].lower()
    return texts.get(code, texts[_ENGLISH])
