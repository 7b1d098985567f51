"""Messages as search sees them: what of them is searched, and what is looked for."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from botservice.core.message_references import write_out
from botservice.core.messages import Author, Message, Role
from botservice.history.recent import Kept
from botservice.llm.demo import SELF
from botservice.search.documents import Document, author_key
from botservice.storage.database import Row
from botservice.storage.message_references import decode_references

# A bot's command, such as "/remind@my_bot"; a path such as "/etc/hosts" is none (Bot API, BotCommand: 1 to 32 letters).
_COMMAND: Final = re.compile(r"/[a-zA-Z0-9_]{1,32}(@\w+)?(?=\s|$)")
# What stands for a message without words, such as "[sticker]"; a place, a contact or a poll says more.
_NO_WORDS: Final = re.compile(r"\[[a-zA-Z ]{1,20}\]")
# Names that programs give to files say nothing.
_UNNAMED: Final = re.compile(
    r"(?:(?:photo|image|img|voice|audio|video|file|document|sticker|screenshot|unnamed|clipboard)[\W_]*)?[\d\W_]*"
    r"(?:\.\w{1,5})?",
    re.IGNORECASE,
)
# What the demo says (llm/demo.py; a test holds both together): it repeats what people said, and is no memory.
_DEMO: Final = re.compile(
    r"\(I am a demo script\. [^\n]*\)\s*\Z|\A(?:You told me on [\d-]+: “[^”]*”\n?)+\Z|\AMy tool says: |"
    + re.escape(SELF)
)
_SAID_BY: Final = frozenset({Role.USER, Role.ASSISTANT})
_NOBODY: Final = Author()
_DEMO_BEGINS: Final = (
    *("Hello", "I am a demo", "I will remember that", "Ask me about that", "Nothing is noted", "Noted: "),
    *("Then I leave", "A script cannot read", "To have me ", "You ", "My tool says"),
)


def read_documents(rows: Iterable[Row[*tuple[Any, ...]]]) -> Iterator[Document]:
    """Yield what is searched of the rows of messages."""
    for row in rows:
        number, _, role_name, text, attachments, platform, author_id, author_name, created_at, *_, others = row
        if role_name in _SAID_BY:
            role = Role.USER if role_name == Role.USER else Role.ASSISTANT
            said = write_out(text, decode_references(others))
            searchable = searchable_text(role, said, [each.get("name") for each in attachments] if attachments else ())
            if searchable:
                key = author_key(Author(platform, author_id, author_name)) if author_id else None
                yield Document(number, role, searchable, author_name, key, created_at, bool(attachments))


def documents_of(said: Iterable[Kept]) -> Iterator[Document]:
    """Yield what is searched of messages as they are kept."""
    for each in said:
        if not isinstance(each, Message):
            yield from read_documents([each])
        elif text := searchable_text(each.role, each.full_text):
            author = each.author or _NOBODY
            key = author_key(author) if author.id else None
            yield Document(each.id or 0, each.role, text, author.name, key, each.created_at)


def searchable_text(role: Role, text: str, file_names: Iterable[str | None] = ()) -> str:
    """Return what search sees of a message; nothing of a bare command, a sticker, what the demo says, or a note."""
    # Most messages are nothing special, and an index looks at every one: cheap questions first.
    text = text.strip()
    if role is not Role.USER and role is not Role.ASSISTANT:
        text = ""
    elif text.startswith("["):
        text = "" if _NO_WORDS.fullmatch(text) else text
    elif role is Role.USER:
        text = _COMMAND.sub("", text, count=1).strip() if text.startswith("/") else text
    elif text.startswith(_DEMO_BEGINS):
        text = "" if _DEMO.search(text) else text
    names = [name for name in file_names if name and not _UNNAMED.fullmatch(name)]
    return "\n".join(part for part in (text, *names) if part) if names else text


def question_of(message: Message) -> str:
    """Return what to look for, for a message of a person; nothing for "ok", a sticker, or a command alone."""
    from botservice.search.query import is_worth_searching

    text = searchable_text(message.role, message.full_text)
    return text if is_worth_searching(text) else ""
