"""What people are told of an answer that is not whole, in ten languages."""
# ruff: noqa: RUF001 - ten languages have their own signs

from collections.abc import Mapping
from typing import Final

from botservice.llm.chat import FinishReason

_ENGLISH: Final = "en"
_CUT: Final[Mapping[str, str]] = {
    "en": "(My answer was cut off here: it became too long. Ask me to go on.)",
    "de": "(Meine Antwort ist hier abgeschnitten: Sie wurde zu lang. Bitte mich, fortzufahren.)",
    "es": "(Mi respuesta se cortó aquí: era demasiado larga. Pídeme que siga.)",
    "fr": "(Ma réponse s’arrête ici : elle devenait trop longue. Demandez-moi de continuer.)",
    "it": "(La mia risposta si interrompe qui: era troppo lunga. Chiedimi di continuare.)",
    "pt": "(Minha resposta foi cortada aqui: ficou longa demais. Peça para eu continuar.)",
    "ru": "(Мой ответ здесь обрывается: он оказался слишком длинным. Попросите меня продолжить.)",
    "ko": "(답이 너무 길어져 여기서 끊겼습니다. 계속해 달라고 말씀해 주세요.)",
    "ja": "（回答が長くなりすぎたため、ここで途切れました。続きが必要ならお知らせください。）",
    "zh": "（回答太长，在此处被截断。需要的话请让我继续。）",
}
_NOTHING_LEFT: Final[Mapping[str, str]] = {
    "en": "(I thought about this for so long that no room was left for an answer. Try a shorter question.)",
    "de": "(Ich habe so lange nachgedacht, dass kein Platz für eine Antwort blieb. Versuch eine kürzere Frage.)",
    "es": "(Lo pensé tanto que no quedó espacio para una respuesta. Prueba con una pregunta más corta.)",
    "fr": "(J’ai réfléchi si longtemps que la place manquait pour répondre. Essayez une question plus courte.)",
    "it": "(Ci ho pensato così a lungo che non è rimasto spazio per rispondere. Prova con una domanda più breve.)",
    "pt": "(Pensei tanto que não sobrou espaço para responder. Tente uma pergunta mais curta.)",
    "ru": "(Я думал так долго, что на ответ не осталось места. Попробуйте вопрос покороче.)",
    "ko": "(생각이 너무 길어져 답할 자리가 남지 않았습니다. 더 짧게 물어봐 주세요.)",
    "ja": "（考えるのに長くかかり、回答する余地がなくなりました。もう少し短く質問してみてください。）",
    "zh": "（思考得太久，没有留下回答的空间。请试着问得短一些。）",
}
_REFUSED: Final[Mapping[str, str]] = {
    "en": "(The model refuses to answer this.)",
    "de": "(Das Modell weigert sich, das zu beantworten.)",
    "es": "(El modelo se niega a responder a esto.)",
    "fr": "(Le modèle refuse de répondre à cela.)",
    "it": "(Il modello si rifiuta di rispondere.)",
    "pt": "(O modelo se recusa a responder a isso.)",
    "ru": "(Модель отказывается отвечать на это.)",
    "ko": "(모델이 이 질문에 답하기를 거부합니다.)",
    "ja": "（モデルはこの質問への回答を拒否しました。）",
    "zh": "（模型拒绝回答这个问题。）",
}


def with_ending(text: str, finish_reason: str | None, language: str | None) -> str:
    """Return an answer with a line about its end, where it is not whole."""
    has_text = bool(text.strip())
    if finish_reason == FinishReason.LENGTH:
        line = _said(_CUT if has_text else _NOTHING_LEFT, language)
        return f"{text}\n\n{line}" if has_text else line
    if finish_reason == FinishReason.REFUSAL and not has_text:
        return _said(_REFUSED, language)
    return text


def _said(texts: Mapping[str, str], language: str | None) -> str:
    return texts[language if language is not None and language in texts else _ENGLISH]
