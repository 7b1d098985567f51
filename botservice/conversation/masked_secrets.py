"""Secrets among the arguments of calls: dots are shown in their place, between their ends and before their length."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from botservice.telemetry.logs import find_registered

DOTS: Final = "••••••"
# Of the words of a name: "key" and the like alone say what is acted on, and have to be seen. What ends in one of these
# words is one, as in "userpassword"; what only begins with one, or follows several, is something else: a secretary, the
# receiver of tokens.
_SECRET_NAMES: Final = re.compile(
    r"(?:pass ?w(?:or)?d|pass ?phrase|pwd|secret|token|credentials?|authorization|\bbearer|cookie"
    r"|(?:api|access|private|signing|encryption|ssh|secret) ?key)(?:(?![a-z])|s$)"
)
_SECRET_NUMBERS: Final = re.compile(r"\b(?:otp|cvv|cvc)\b")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# What gives itself away, whatever it is called: keys of well-known services, signed tokens, passwords in addresses. No
# run of signs is looked through twice, whatever it is made of.
_SECRET_VALUES: Final = re.compile(
    r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|xox[abeprs]-[\w-]{10,}|AKIA[A-Z0-9]{12,}|Bearer\s+[\w.~+/-]{12,}=*"
    r"|\d{6,}:[\w-]{30,})|(?<![\w-])eyJ[\w-]{8,}+\.[\w-]{8,}+\.[\w-]+|(?<=//)[^/\s:@]++:(?P<password>[^@\s/]++)(?=@)"
)
# A model chooses the words: possible commands, and values longer than keys are, stay visible to those who decide.
_MAY_RUN: Final = re.compile(r"[`;|&<>(\n]|\$\{")
_LONGEST_GUESS: Final = 256
_LONGEST_ENDS: Final = 4  # signs that are shown at either end: a model can choose words that look like a secret
_TOKENS: Final = re.compile(r'"(?P<text>(?:[^"\\]|\\.)*+)"(?P<colon>\s*+:)?|[\[\]{},]|[^\s"\[\]{},:]++', re.DOTALL)
_ESCAPES: Final = re.compile(r"\\u(?P<code>[0-9a-fA-F]{4})|\\(?P<sign>.)|.", re.DOTALL)
_SHORT: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_DEEPEST: Final = 4  # JSON inside a text of JSON


@dataclass(frozen=True, slots=True)
class Secret:
    """Where a secret stands in a text.

    Attributes:
        ends: How many signs of it are shown at either end.
    """

    begin: int
    end: int
    ends: int = 0

    def shown(self, text: str) -> tuple[str, str]:
        """Return the signs that are shown before and behind the dots."""
        return text[self.begin : self.begin + self.ends], text[self.end - self.ends : self.end]

    @property
    def length(self) -> int:
        """How many signs it has."""
        return self.end - self.begin


def find_secrets(text: str, name: str = "", *, is_json: bool = False) -> list[Secret]:
    """Return what of an argument's text is to be masked, from left to right, by names or by form.

    Args:
        text: As it is handed to the tool; JSON in it is looked through where it stands.
        name: What the argument is called.
        is_json: Whether it is the JSON of a value, which begins with its name.
    """
    if is_json:
        return _apart([*_by_form(text), *_by_name(text, name)])
    if _is_secret_number(name):
        return [Secret(0, len(text))] if text else []
    if _is_secret_name(name):
        return [_with_ends(0, len(text))] if text else []
    return _apart([*_by_form(text), *_in_json(text)])


def mask(value: Any, name: str = "") -> Any:
    """Return the value of an argument with dots in the place of secrets, known by their names or their form."""
    if isinstance(value, Mapping):
        return {key: mask(each, str(key)) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [mask(each, name) for each in value]
    if isinstance(value, str):
        return masked(value, find_secrets(value, name))
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return f"{DOTS} ({len(str(value))})" if is_number and _is_secret_number(name) else value


def masked(text: str, secrets: Sequence[Secret]) -> str:
    """Return text with dots in the place of secrets."""
    parts, end = [], 0
    for each in secrets:
        before, behind = each.shown(text)
        parts += [text[end : each.begin], before, DOTS, behind, f" ({each.length})"]
        end = each.end
    return "".join([*parts, text[end:]])


def _by_form(text: str) -> Iterator[Secret]:
    yield from (Secret(begin, end) for begin, end in find_registered(text))
    for found in _SECRET_VALUES.finditer(text):
        if found["password"] is None:
            yield Secret(*found.span(), _LONGEST_ENDS)
        elif not _may_run(found["password"]):
            yield _with_ends(*found.span("password"))


def _in_json(text: str, depth: int = 0) -> Iterator[Secret]:
    """Yield the values whose name in JSON says that they are secret; JSON that is broken is read as far as it goes."""
    if text.lstrip()[:1] in ("{", "[") and depth <= _DEEPEST:
        yield from _by_name(text, "", depth)


def _by_name(text: str, name: str, depth: int = 0) -> Iterator[Secret]:
    names = [name]  # of each level, the name that its values have
    for found in _TOKENS.finditer(text):
        sign = found[0]
        if sign in "{[":
            names.append("" if sign == "{" else names[-1])
        elif sign in "}]":
            del names[-1 if len(names) > 1 else 1 :]
        elif sign == ",":
            continue
        elif found["colon"] is not None:
            names[-1] = _decoded(found["text"])
        else:
            begin, end = found.span("text") if found["text"] is not None else found.span()
            yield from _in_value(text, begin, end, names[-1], depth, is_text=found["text"] is not None)


def _in_value(text: str, begin: int, end: int, name: str, depth: int, *, is_text: bool) -> Iterator[Secret]:
    if begin == end:
        return
    if _is_secret_number(name):
        yield Secret(begin, end)
    elif is_text and _is_secret_name(name) and not _may_run(text[begin:end]):
        yield _with_ends(begin, end)
    elif is_text and "\\" in text[begin:end]:
        inner = list(_ESCAPES.finditer(text, begin, end))
        words, places = "".join(map(_sign_of, inner)), [*(each.start() for each in inner), end]
        for each in (*_by_form(words), *_in_json(words, depth + 1)):
            yield _with_ends(places[each.begin], places[each.end])


def _decoded(text: str) -> str:
    return "".join(map(_sign_of, _ESCAPES.finditer(text))) if "\\" in text else text


def _sign_of(found: re.Match[str]) -> str:
    if found["code"] is not None:
        return chr(int(found["code"], 16))
    return found[0] if found["sign"] is None else _SHORT.get(found["sign"], found["sign"])


def _apart(secrets: Sequence[Secret]) -> list[Secret]:
    """Return secrets from left to right; those that overlap as one, without its ends."""
    kept: list[Secret] = []
    for each in sorted(secrets, key=lambda secret: (secret.begin, -secret.end)):
        if kept and each.begin < kept[-1].end:
            if each.end > kept[-1].end or not each.ends:
                kept[-1] = Secret(kept[-1].begin, max(each.end, kept[-1].end))
        else:
            kept.append(each)
    return kept


def _may_run(text: str) -> bool:
    return len(text) > _LONGEST_GUESS or _MAY_RUN.search(text) is not None


def _with_ends(begin: int, end: int) -> Secret:
    return Secret(begin, end, min(_LONGEST_ENDS, (end - begin) // 8))


def _is_secret_name(name: str) -> bool:
    return _SECRET_NAMES.search(_words_of(name)) is not None


def _is_secret_number(name: str) -> bool:
    return _SECRET_NUMBERS.search(_words_of(name)) is not None


def _words_of(name: str) -> str:
    return " ".join(_WORDS.findall(name)).lower()
