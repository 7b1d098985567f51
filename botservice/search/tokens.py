"""Text into tokens: words, parts of compounds, and character n-grams where a script has no spaces."""

import re
import unicodedata
from typing import Final

MAX_CHARACTERS: Final = 200_000
MAX_TOKEN: Final = 64

_EMOJI: Final = "\u2600-\u27bf\U0001f300-\U0001faff"
_CHUNK: Final = re.compile(rf"\w+(?:[.@_\-/:'\u2019+&]+\w+)*[+#]*|[{_EMOJI}]")
_PART: Final = re.compile(r"[^\W_]+")
_CAMEL: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_CAMEL_HUMP: Final = re.compile(r"[A-Z](?<=[a-z0-9][A-Z])")  # the same, found faster
_PARTING: Final = frozenset(b" \t\n\r\v\f\x1c\x1d\x1e\x1f!\"$%()*,;<=>?[\\]^`{|}~'")
# ASCII letters become small, what only parts words a blank; what may join them becomes NUL.
_PLAIN: Final = bytes(
    code + 32 if 65 <= code <= 90 else code if chr(code).isalnum() and code < 128 else 32 if code in _PARTING else 0
    for code in range(256)
)
_APOSTROPHE: Final = re.compile(r"['\u2019]")
_DIGITS_GROUPED: Final = re.compile(r"(?<=\d)[,.\u202f\u00a0 '](?=\d{3}(?!\d))")
_THOUSANDS: Final = re.compile(r"[0-9][,. '][0-9]{3}(?![0-9])")  # the same in ASCII, found faster
# Runs of one script. Han and Kana run on into each other, as Japanese words do.
_SCRIPT: Final = re.compile(
    "(?P<han>[\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u3041-\u309f]+)"
    "|(?P<katakana>[\u30a0-\u30ff\uff66-\uff9f]+)"
    "|(?P<hangul>[\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3]+)"
    "|(?P<spaceless>[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+)"
    "|(?P<other>[^\u3005\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff\u3041-\u30ff\uff66-\uff9f"
    "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+)"
)
_HIRAGANA: Final = re.compile("[\u3041-\u309f\u30fc]+")
# What Korean glues to a noun: case markers and the copula, longest first (closed class).
_KOREAN_ENDING: Final = re.compile(
    "(?:이었어요|이었어|였어요|이에요|입니다|에서는|에게서|한테서|이라고|라고|에서|에게|한테|부터|까지|으로|이랑|처럼|보다|하고|였지|이야|예요|"
    "이나|은|는|이|가|을|를|에|의|도|로|와|과|랑|만|야)$"
)


def fold(word: str) -> str:
    """Return word without the accents that people leave out; other scripts keep their marks."""
    if word.isascii():
        return word
    return "".join(
        character if ord(character) > 0x24F else (unicodedata.normalize("NFD", character)[0])
        for character in word.replace("ß", "ss")
    )


def normalize(text: str) -> str:
    """Return text with one form per letter: width, ligatures, composed accents."""
    text = text[:MAX_CHARACTERS]
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def tokenize(text: str) -> list[str]:
    """Return the tokens of text in order; whole compounds stand before their parts."""
    # Most messages are plain words: passes over their bytes take a third of the time of the patterns.
    if text.isascii() and len(text) <= MAX_CHARACTERS:
        plain = text.rstrip(".\n ").replace(". ", "  ").encode().translate(_PLAIN)
        if b"\0" not in plain and not _CAMEL_HUMP.search(text) and not _THOUSANDS.search(text):
            tokens = plain.decode().split()
            return tokens if max(map(len, tokens), default=0) <= MAX_TOKEN else _cut(tokens)
    return _tokenize(normalize(text))


def _tokenize(text: str) -> list[str]:
    text = _DIGITS_GROUPED.sub("", text)
    has_camel = _CAMEL.search(text) is not None
    if not has_camel:
        text = text.lower()
    tokens: list[str] = []
    for chunk in _CHUNK.findall(text):
        if chunk.isalnum() and chunk.isascii():
            tokens.append(chunk)
        else:
            _add_compound(chunk, tokens)
    if has_camel:
        tokens = [part for token in tokens for part in _camel_parts(token)]
    return _cut(tokens)


def _cut(tokens: list[str]) -> list[str]:
    return [token[:MAX_TOKEN] for token in tokens]


def _camel_parts(token: str) -> list[str]:
    whole = token.lower()
    parts = _CAMEL.sub(" ", token).lower().split()
    return [whole, *parts] if len(parts) > 1 and token.isalnum() else [whole]


def _add_compound(chunk: str, tokens: list[str]) -> None:
    parts = _PART.findall(chunk)
    if len(parts) > 1 and not _APOSTROPHE.search(chunk):
        tokens.append(chunk)
        if "-" in chunk or "_" in chunk:
            tokens.append("".join(parts))
    elif not parts or chunk[-1] in "+#":
        tokens.append(chunk)
    for part in parts:
        if part.isascii() or max(part) < "\u0e00":
            tokens.append(part)
        else:
            _add_scripts(part, tokens)


def _add_scripts(run: str, tokens: list[str]) -> None:
    for match in _SCRIPT.finditer(run):
        part, kind = match[0], match.lastgroup
        if kind == "han":
            tokens.extend(character for character in part if not "\u3041" <= character <= "\u309f")
            tokens.extend(part[i : i + 2] for i in range(len(part) - 1))
            if len(part) == 1 and "\u3041" <= part <= "\u309f":
                tokens.append(part)
        elif kind == "hangul":
            _add_korean(part, tokens)
        elif kind == "katakana":
            tokens.append(part)
            if len(part) > 3:
                tokens.extend(part[i : i + 2] for i in range(len(part) - 1))
        elif kind == "spaceless":
            tokens.extend(part[i : i + 3] for i in range(max(1, len(part) - 2)))
        else:
            tokens.append(part)


def _add_korean(word: str, tokens: list[str]) -> None:
    tokens.append(word)
    bare = _KOREAN_ENDING.sub("", word, count=1)
    if bare and bare != word:
        tokens.append(bare)
    if len(bare) > 2:
        tokens.extend(bare[i : i + 2] for i in range(len(bare) - 1))


def token_weight(token: str) -> float:
    """Return how much a token says by its form: a whole word 1, a single character of a spaceless script less."""
    first = token[0]
    if first < "\u3041":
        return 1.0
    if _HIRAGANA.fullmatch(token):
        return 0.35
    if len(token) == 1 and "\u3400" <= first <= "\u9fff":
        return 0.5
    return 0.9
