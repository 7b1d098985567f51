"""What people are told about files that were not read, in ten languages."""
# ruff: noqa: RUF001 - ten languages have their own signs

import re
from collections.abc import Mapping, Sequence
from typing import Final

_ENGLISH: Final = "en"
_MAX_NAMES: Final = 3
_MAX_CHARACTERS: Final = 60
_MARKS: Final = re.compile(r"[^\w .-]")
_UNREAD: Final[Mapping[str, str]] = {
    "en": "I did not read {names}: that would take too much. A smaller or simpler file may work.",
    "de": "Ich habe {names} nicht gelesen: das wäre zu aufwendig. Mit einer kleineren Datei geht es vielleicht.",
    "es": "No he leído {names}: sería demasiado costoso. Con un archivo más pequeño quizá funcione.",
    "fr": "Je n’ai pas lu {names} : cela demanderait trop. Un fichier plus petit passera peut-être.",
    "it": "Non ho letto {names}: richiederebbe troppo. Con un file più piccolo forse funziona.",
    "pt": "Não li {names}: exigiria demais. Um arquivo menor talvez funcione.",
    "ru": "Я не прочитал {names}: это потребовало бы слишком много. Попробуйте файл поменьше.",
    "ko": "{names}: 읽는 데 너무 많은 자원이 필요해 읽지 않았습니다. 더 작은 파일로 시도해 주세요.",
    "ja": "{names}は処理が重すぎるため読みませんでした。小さいファイルなら読めるかもしれません。",
    "zh": "我没有读取 {names}：处理它的代价太大。请试试更小的文件。",
}


def unread_text(names: Sequence[str], language: str | None) -> str:
    """Return what a person is told whose files were not read."""
    chosen = language if language is not None and language in _UNREAD else _ENGLISH
    shown = [_MARKS.sub(" ", name)[:_MAX_CHARACTERS].strip() or "…" for name in names[:_MAX_NAMES]]
    more = ", …" if len(names) > _MAX_NAMES else ""
    return _UNREAD[chosen].format(names=", ".join(shown) + more)
