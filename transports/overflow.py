"""Answers that are longer than a chat bears: a few messages, and the whole as a text file behind them."""
# ruff: noqa: RUF001 - ten languages have their own signs

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeVar

from botservice.messages import storable
from transports.intricacy import MAX_CHARACTERS

MAX_MESSAGES: Final = 10
_NAME: Final = "answer.txt"
_ENGLISH: Final = "en"
_NOTE: Final[Mapping[str, str]] = {
    "en": "This is not all: the whole answer is in the file.",
    "de": "Das ist nicht alles: die ganze Antwort steht in der Datei.",
    "es": "Esto no es todo: la respuesta completa está en el archivo.",
    "fr": "Ce n’est pas tout : la réponse entière est dans le fichier.",
    "it": "Non è tutto: la risposta completa è nel file.",
    "pt": "Isto não é tudo: a resposta completa está no arquivo.",
    "ru": "Это не всё: полный ответ в файле.",
    "ko": "아직 더 있습니다. 전체 답변은 파일에 있습니다.",
    "ja": "まだ続きがあります。回答の全文はファイルにあります。",
    "zh": "还没有完：完整的回答在文件里。",
}

T = TypeVar("T")


def head_of(text: str) -> str:
    """Return the beginning of an answer, as much as may become messages, up to the end of a line where that goes."""
    if len(text) <= MAX_CHARACTERS:
        return text
    end = text.rfind("\n", MAX_CHARACTERS // 2, MAX_CHARACTERS)
    return text[: end if end > 0 else MAX_CHARACTERS]


def fitting(pieces: Sequence[T], *, is_all: bool) -> tuple[Sequence[T], bool]:
    """Return the pieces that are sent as messages, and whether these are the whole answer.

    Args:
        is_all: Whether the pieces were made of the whole answer.
    """
    if is_all and len(pieces) <= MAX_MESSAGES:
        return pieces, True
    return pieces[: MAX_MESSAGES - 1], False


def whole_file(text: str) -> dict[str, Any]:
    """Return an answer as a file; its text stands in the delivery itself."""
    return {"name": _NAME, "mime_type": "text/plain", "text": storable(text)}


def note(language: str | None) -> str:
    """Return what is said beside the file, in a language such as "de" or "pt-br"."""
    return _NOTE.get((language or _ENGLISH).partition("-")[0].lower(), _NOTE[_ENGLISH])
