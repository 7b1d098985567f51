"""The text of others, where it stands between words of ours: in prompts, and in what the service itself says.

Everything that a person can choose freely passes through here: names, titles, names of files, what is quoted.
"""

import hashlib
import re
import unicodedata
from functools import lru_cache
from typing import Final

from botservice.core.visible_text import isolate_lines, without_hidden

_LONGEST_NAME: Final = 80

# What begins or ends a part of a prompt. A sign that looks like "<" may do for a model as well.
_MARKS: Final = re.compile(
    r"([<\uff1c\ufe64\u2039]/?)(?=[\s/]{0,8}(?:person|memory|notes|found|page|system|developer|assistant|user|tool|function|im_|\|))",
    re.IGNORECASE,
)
# What the service itself puts around records that it gives in the user's role.
_OWN_MARKS: Final = re.compile(
    r"([<\uff1c\ufe64\u2039][\s/]{0,8}?)(?=[\s/]{0,8}(?:person|memory)\s{0,8}[>\uff1e\ufe65\u203a])", re.IGNORECASE
)
_WORD: Final = re.compile(r"\w+")
_NUMBERED: Final = re.compile(r"\d{1,20}\.")
# What would end a name where it stands before or between words of ours.
_AROUND_NAMES: Final = str.maketrans(dict.fromkeys('<>[]{}|:"`\\', " "))
# An underscore within a word is none; a dollar sign before a digit is money and ends no formula.
_MARKUP: Final = re.compile(r"[*~#|&\\]|(?<![^\W_])_|_(?![^\W_])|\$(?!\d)")
FOUND_START: Final = "<memory>"
FOUND_END: Final = "</memory>"
"""Between these marks, remembered messages stand in a prompt as records."""
# What platforms, or markdown, make links, mentions or styles of.
_STYLED: Final = frozenset("*_~`<>[]\\|#@/:+.&^$")


@lru_cache(maxsize=4096)
def quote_name(name: str | None, otherwise: str = "somebody") -> str:
    """Return a freely chosen name as one short line that cannot be taken for anything but a name."""
    bare = " ".join(in_one_line(name or "").translate(_AROUND_NAMES).split())
    return bare[:_LONGEST_NAME].strip() or otherwise


def quote_in_markdown(name: str | None, otherwise: str) -> str:
    """Return a freely chosen name as it may stand in a model's Markdown: as words, in which nothing is markup."""
    return isolate_lines(quote_name(_MARKUP.sub(" ", name or ""), otherwise), is_code=False)


def quote_text(text: str) -> str:
    """Return text as it may stand inside a part of a prompt: nothing in it begins or ends one."""
    return text if _is_plain(text) else _MARKS.sub(r"\1 ", text)


def quote_record(text: str) -> str:
    """Return text as it may stand in a list of records: no line of it looks like a record of its own."""
    if _is_plain(text) and text.isprintable():  # which ends of lines are not
        return text
    return "\n  ".join(quote_text(text).splitlines())


def quote_said(text: str) -> str:
    """Return a person's words for a prompt, which cannot pass for what the service itself says in that role."""
    return text if _is_plain(text) else _OWN_MARKS.sub(r"\1 ", text)


def quote_said_in_group(text: str) -> str:
    """Return a person's words for a prompt where several speak: nor does a line look like another message."""
    return "\n  ".join(quote_said(text).splitlines()) if len(text.splitlines()) > 1 else quote_said(text)


def _is_plain(text: str) -> bool:
    """Return whether nothing in text can be a mark: each begins with "<", or with a sign beyond ASCII."""
    return text.isascii() and "<" not in text


def found_records(content: str) -> str:
    """Return the records of a prompt's content that stand between their marks; all of it where there are none."""
    _, start, records = content.partition(f"{FOUND_START}\n")
    return records.rpartition(f"\n{FOUND_END}")[0] if start else content


def shortened(text: str, limit: int) -> str:
    """Return text cut to so many characters, with a sign where some are left out."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def quote_inside(text: str) -> str:
    """Return text escaped to stand in [in reply to somebody: "text"], which it cannot end."""
    return text.replace('"]', '" ]')


def _is_sentence(text: str) -> bool:
    """Return whether dots and colons only end words, so that no platform finds an address."""
    bare = re.sub(r"[.:](?=\s|$)", "", text)
    return not any(sign in _STYLED for sign in bare) and not _NUMBERED.match(text)


def is_link_like(text: str) -> bool:
    """Return whether a platform may make a link, a mention or a command of a text of others."""
    return any(sign in _STYLED for sign in text) and not _is_sentence(text)


def in_one_line(text: str) -> str:
    """Return text in one line, without signs that cannot be seen or turn the direction of what follows."""
    return " ".join(without_hidden(text).split())


def digest_of_words(text: str, *salt: object) -> str:
    """Return what tells whether words are the same, whatever their order and case, without saying them.

    Args:
        salt: What else it depends on.
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    words = " ".join(sorted(set(_WORD.findall(folded))))
    told = "\0".join([words, *map(str, salt)])
    return hashlib.blake2b(told.encode("utf-8", "surrogatepass"), digest_size=16, person=b"refused words").hexdigest()
