"""What a ranking index knows of a message, and of who speaks in a chat."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from botservice.core.messages import Author, Role
from botservice.search.tokens import fold, tokenize

_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")


@dataclass(frozen=True, slots=True)
class Document:
    """One message, as search sees it.

    Attributes:
        id: The message's id in storage.
        text: What was said, with captions, transcripts and file names in it.
        author_name: The display name, where one is known.
        author_key: What tells two people of one name apart; None if nothing does.
        created_at: When it was said (aware).
        has_files: Whether files came with it.
    """

    id: int
    role: Role
    text: str
    author_name: str | None
    author_key: str | None
    created_at: datetime
    has_files: bool = False


def is_question(text: str) -> bool:
    """Return whether a text ends as a question does."""
    return text.rstrip().endswith(_QUESTION_MARKS)


_MIN_NAME = 2


def author_key(author: Author | None) -> str | None:
    """Return what Document.author_key holds for author: platform and id; None for a name without identity."""
    if author is None or author.id is None:
        return None
    return f"{author.platform}:{author.id}"


class AuthorNumbers:
    """Authors of one chat, numbered from 1; 0 is nobody."""

    def __init__(self) -> None:
        self._numbers: dict[tuple[str | None, str | None], int] = {}
        self._by_key: dict[str, set[int]] = {}
        self._by_name: dict[str, set[int]] = {}
        self._by_token: dict[str, set[int]] = {}

    def number(self, document: Document) -> int:
        """Return the number of a message's author."""
        identity = (document.author_key, document.author_name)
        if identity == (None, None):
            return 0
        number = self._numbers.get(identity)
        if number is None:
            number = self._numbers[identity] = len(self._numbers) + 1
            self._learn(number, document)
        return number

    def _learn(self, number: int, document: Document) -> None:
        if document.author_key is not None:
            self._by_key.setdefault(document.author_key, set()).add(number)
        if document.author_name is not None:
            self._by_name.setdefault(document.author_name.casefold(), set()).add(number)
            for token in tokenize(document.author_name):
                if len(token) >= _MIN_NAME:
                    self._by_token.setdefault(fold(token), set()).add(number)

    def numbers_of(self, author: Author) -> set[int]:
        """Return the numbers under which author speaks here: by identity, else by name."""
        key = author_key(author)
        if key is not None and key in self._by_key:
            return self._by_key[key]
        return self._by_name.get(author.name.casefold(), set()) if author.name else set()

    def named(self, word: str) -> set[int]:
        """Return the authors whom a word of a question names."""
        return self._by_token.get(fold(word), set())
