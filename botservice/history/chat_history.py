"""The conversation of one context: what people and the assistant said, and nothing else."""

import asyncio
import importlib
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botservice.core.messages import Attachment, Author, Message, Role
from botservice.history.documents import question_of, searchable_text
from botservice.history.edit_queries import delete_rows
from botservice.history.message_rendering import Room
from botservice.history.queries import (
    find_last_user_message,
    find_people,
    find_window,
    insert_message,
    list_newest,
    read_period,
    read_shown,
)
from botservice.history.recent import Recent, RecentMessages
from botservice.history.rows import Bounds, NewMessage, read_messages, told_apart
from botservice.history.search_values import Question, SearchHit, TimeRange, merge_hits
from botservice.history.window import CONVERSATION, MessageSelector, StoredMessages
from botservice.llm.tokens import TokenCounter, count_aside, counter_for
from botservice.storage.blobs import sweep_files
from botservice.storage.database import Connection, SQLAlchemyError, Storage
from botservice.storage.statements import LARGEST_ID

if TYPE_CHECKING:
    from botservice.history.finding import SearchIndexes

logger = logging.getLogger(__name__)

_SEARCH: Final = "botservice.history.finding"
_COUNTED_INLINE = 2_000  # characters: longer texts are counted in a thread


@dataclass(frozen=True, slots=True)
class Recall:
    """What a prompt takes from a history.

    Attributes:
        window: What the selector took, oldest first.
        found: What searching found and the window does not hold, best first.
        is_group: Whether more than one person speaks in the chat.
        people: Those who have lately spoken there, where they are more than one.
        is_whole: Whether the window and the question are all that there is: then there is nothing to look for.
        also_read: What the caller's own query returned, in the same view of the database.
    """

    window: list[Message] = field(default_factory=list)
    found: list[SearchHit] = field(default_factory=list)
    is_group: bool = False
    people: frozenset[Author] = frozenset()
    is_whole: bool = False
    also_read: Any = None


@dataclass(frozen=True, slots=True)
class _LastRecall:
    """What was recalled last: every prompt of a turn asks the same, and gets the same while the chat stays as it is.

    Looking it up again for each prompt took a fifth of the CPU of a turn with two tools.
    """

    asked: tuple[Any, ...]
    bounds: Bounds
    recall: Recall


class ChatHistory:
    """The messages of one context.

    Every method reads and writes only this context.
    """

    def __init__(self, storage: Storage, context_id: int, last_user_message: Message | None = None) -> None:
        self._storage = storage
        self._context_id = context_id
        self._last_user_message = last_user_message
        self._last_recall: _LastRecall | None = None

    @property
    def last_user_message(self) -> Message | None:
        """The newest message of a person that this object knows."""
        return self._last_user_message

    async def append_user_message(
        self,
        text: str,
        *,
        author: Author | str | None = None,
        attachments: Iterable[Attachment] = (),
        created_at: datetime | None = None,
    ) -> Message:
        """Append a message of a person to the history and return it.

        Args:
            created_at: When it was written (aware); by default now.

        Raises:
            ValueError: created_at is naive.
        """
        message = await self._append(Role.USER, text, author, attachments, created_at)
        self._last_user_message = message
        return message

    async def append_assistant_message(
        self,
        text: str,
        *,
        author: Author | str | None = None,
        attachments: Iterable[Attachment] = (),
        created_at: datetime | None = None,
    ) -> Message:
        """Append a message of the assistant to the history and return it."""
        return await self._append(Role.ASSISTANT, text, author, attachments, created_at)

    async def append_system_message(
        self,
        text: str,
        *,
        author: Author | str | None = None,
        attachments: Iterable[Attachment] = (),
        created_at: datetime | None = None,
    ) -> Message:
        """Append a note of the service to the history; selectors and search leave it out."""
        return await self._append(Role.SYSTEM, text, author, attachments, created_at)

    async def messages(self, limit: int | None = None) -> list[Message]:
        """List the messages, oldest first; with a limit, only the newest.

        Raises:
            ValueError: limit is negative.
        """
        if limit is not None and limit < 0:
            raise ValueError(f"limit must be 0 or more, not {limit}")

        def query(connection: Connection) -> list[Message]:
            rows = list_newest(connection, self._context_id, LARGEST_ID if limit is None else limit)
            return read_messages(connection, self._context_id, rows, counter_for())[::-1]

        return await self._storage.read(query)

    async def select_messages(self, selector: MessageSelector) -> list[Message]:
        """Select messages since the conversation last started over, oldest first.

        The selector runs in a thread and reads from the end.
        """

        def query(connection: Connection) -> list[Message]:
            after, *_ = find_window(connection, self._context_id, None)
            sequence = StoredMessages(connection, self._context_id, after_position=after, counter=counter_for())
            return list(selector.get_messages(sequence))

        return await self._storage.read(query)

    async def search(self, text: str, k: int = 3, asker: Author | str | None = None) -> list[SearchHit]:
        """Find the k most relevant messages for text, best first.

        Args:
            asker: The person whom "I" and "my" in text mean.

        Raises:
            ValueError: k is negative.
        """
        if k < 0:
            raise ValueError(f"k must be 0 or more, not {k}")
        wanted = searchable_text(Role.USER, text)
        if k == 0 or not wanted:
            return []
        question = Question(wanted, k, self._storage.now(), Author.of(asker))
        return await self._ask(
            question, lambda indexes, connection, asked: indexes.search(connection, self._context_id, asked)
        )

    def is_searchable(self) -> bool:
        """Check whether search is available; it always is."""
        return True

    async def recall(
        self,
        selector: MessageSelector,
        *,
        search_k: int,
        model: str | None = None,
        room: Room | None = None,
        also_read: Callable[[Connection], Any] = lambda _: None,
    ) -> Recall:
        """Find the earlier messages that belong into a prompt.

        Args:
            search_k: The number of messages to find, besides the question itself and those that the selector takes.
            model: The model whose encoding counts the tokens.
            room: The token budget of the found messages; without it, all are returned.
            also_read: Another short query for the same view of the database.
        """
        message, counter = self._last_user_message, counter_for(model)
        if message is None:
            return Recall(also_read=await self._storage.read(also_read))
        asked = (message, selector, search_k, model, room and room.tokens)
        last = self._last_recall if self._last_recall is not None and self._last_recall.asked == asked else None

        def read(connection: Connection) -> tuple[Bounds, Recall]:
            return self._read_window(connection, message, selector, counter, also_read, last)

        bounds, seen = await self._storage.read(read)
        found = seen.found
        if not (seen.is_whole or (last is not None and last.bounds == bounds) or not search_k):
            await search_indexes(self._storage)  # reading a question needs the same modules
            question = _question(message, search_k, seen.window)
            found = await self._ask(question, partial(self._find, counter, room)) if question.text else []
        recall = replace(seen, found=found) if found else seen
        self._last_recall = _LastRecall(asked, bounds, recall)
        return recall

    async def _ask(
        self, question: Question, find: Callable[["SearchIndexes", Connection, Question], list[SearchHit] | None]
    ) -> list[SearchHit]:
        """Return what is found for a question, by its meaning too where that is known."""
        indexes = await search_indexes(self._storage)
        asked = replace(question, vector=await indexes.vector_of(self._storage, self._context_id, question.text))
        return await indexes.read(self._storage, lambda connection: find(indexes, connection, asked))

    def _read_window(
        self,
        connection: Connection,
        message: Message,
        selector: MessageSelector,
        counter: TokenCounter,
        also_read: Callable[[Connection], Any],
        last: _LastRecall | None,
    ) -> tuple[Bounds, Recall]:
        """Return how far the chat has come, and what a prompt takes besides what is found.

        Args:
            last: What is returned, with its found ones, where the chat is as it was then.
        """
        recents, context_id = RecentMessages.of(self._storage), self._context_id
        is_known = last is not None or recents.is_of_one(context_id)

        def choose() -> tuple[Bounds, Recall, Recent | None]:
            bounds = find_window(connection, context_id, message.id)
            if last is not None and last.bounds == bounds:
                return bounds, last.recall, None
            at = bounds.before, message
            recent = recents.newest(connection, context_id, bounds.version, bounds.last, counter.name, asked=at)
            sequence = StoredMessages(
                connection,
                context_id,
                after_position=bounds.after,
                before_position=bounds.before,
                counter=counter,
                recent=recent,
            )
            window = list(selector.get_messages(sequence))
            is_whole = (
                bounds.before is not None and len({each.id for each in window} | {message.id}) == bounds.message_count
            )
            return bounds, Recall(window, is_whole=is_whole), recent

        known = also_read(connection)
        bounds, seen, recent = choose()
        people = None if is_known else find_people(connection, context_id)
        seen = replace(seen, also_read=known)
        if recent is None or (people is None and recent.is_of_one):
            return bounds, seen
        people = people or find_people(connection, context_id)
        speakers = told_apart(people)
        recents.keep(context_id, replace(recent, speakers=speakers))
        return bounds, replace(seen, is_group=len(speakers) > 1, people=people)

    def _find(
        self,
        counter: TokenCounter,
        room: Room | None,
        indexes: "SearchIndexes",
        connection: Connection,
        question: Question,
    ) -> list[SearchHit] | None:
        """Return what was found that there is room for, each text once, with what makes it readable.

        Of long messages it is the passages that have to do with the question. None: ask once more.

        A search that breaks costs what it would have found, and not the answer.
        """
        try:
            found = indexes.search_with_neighbours(connection, self._context_id, question, counter)
            if not found or room is None:
                return found
            return room.fill(found, question.text)
        except SQLAlchemyError:
            raise
        except Exception:
            logger.exception("search.failed", extra={"context": self._context_id})
            return []

    async def people(self) -> frozenset[Author]:
        """List the people who wrote recently."""
        return await self._storage.read(lambda connection: find_people(connection, self._context_id))

    async def search_again(
        self, texts: Sequence[str], *, k: int, room: Room, period: TimeRange | None = None
    ) -> list[SearchHit]:
        """Search for several texts and return the found messages with their context, within the token budget.

        The last message of a person is left out. The best match of each text comes first, then the second best.

        Args:
            texts: The texts to search for; none for the newest messages of a period.
        """
        last = self._last_user_message
        exclude = [] if last is None or last.id is None else [last.id]
        wanted = list(filter(None, (searchable_text(Role.USER, text) for text in texts)))
        if not wanted:
            within = None if period is None else period.seconds
            said = await self._storage.read(
                lambda connection: read_period(connection, self._context_id, within, k, counter_for())
            )
            return room.fill(SearchHit(each, 0.0) for each in said if each.id not in exclude)
        asker, now = None if last is None else last.author, self._storage.now()
        find = partial(self._find, counter_for(), None)
        questions = [Question(text, k, now, asker, exclude, period=period, is_each_once=True) for text in wanted]
        found = [await self._ask(each, find) for each in questions]
        return await asyncio.to_thread(room.fill, merge_hits(found), "\n".join(wanted))

    async def read_message(self, message_id: int) -> Message | None:
        """Get a message of a person or the assistant in this chat by its id, or None."""
        found = await self._storage.read(lambda connection: read_shown(connection, self._context_id, [message_id]))
        message = found.get(message_id)
        return message if message is not None and message.role in CONVERSATION else None

    async def delete_messages(self, message_ids: Collection[int | None]) -> int:
        """Delete messages by their ids and return the number; ids of other contexts are ignored."""
        known = [message_id for message_id in message_ids if message_id is not None]
        deleted = await self._storage.write(lambda connection: delete_rows(connection, self._context_id, known))
        await sweep_files(self._storage)
        await self.refresh()
        return len(deleted)

    async def clear(self) -> int:
        """Delete all messages and return the number."""
        deleted = await self._storage.write(lambda connection: delete_rows(connection, self._context_id))
        await sweep_files(self._storage)
        self._last_user_message = None
        return len(deleted)

    async def refresh(self) -> None:
        """Reload changes that others have made to this history."""
        self._last_user_message = await self._storage.read(
            lambda connection: find_last_user_message(connection, self._context_id)
        )

    def remember_last(self, message: Message | None) -> None:
        """Remember the newest message of a person that was stored by other means."""
        self._last_user_message = message

    async def _append(
        self,
        role: Role,
        text: str,
        author: Author | str | None,
        attachments: Iterable[Attachment],
        created_at: datetime | None,
    ) -> Message:
        if created_at is not None and created_at.tzinfo is None:
            raise ValueError("created_at must be aware, such as datetime.now(UTC)")
        counter, count = await count_text(text)
        new = NewMessage(
            role=role,
            text=text,
            created_at=created_at or self._storage.now(),
            author=Author.of(author),
            attachments=tuple(attachments),
            token_count=count,
            token_encoding=counter.name,
        )
        return await self._storage.write(
            lambda connection: insert_message(connection, self._context_id, new), sort_key=(self._context_id,)
        )


async def search_indexes(storage: Storage) -> "SearchIndexes":
    """Return the indexes of a storage; what searches is loaded for the first search, off the event loop."""
    if not hasattr(sys.modules.get(_SEARCH), "SearchIndexes"):  # other searches wait for it in a thread, too
        await asyncio.to_thread(importlib.import_module, _SEARCH)
    from botservice.history.finding import SearchIndexes

    return SearchIndexes.of(storage)


def _question(message: Message, search_k: int, window: Sequence[Message]) -> Question:
    """Return what to look for besides a window, for a person's message; its text is empty for nothing."""
    exclude = [] if message.id is None else [message.id]
    shown = [each.id for each in window if each.id is not None]
    text = question_of(message)
    return Question(text, search_k, message.created_at, message.author, exclude, shown=shown, is_each_once=True)


async def count_text(text: str) -> tuple[TokenCounter, int]:
    """Return the counter for a text and its count, without holding up the event loop."""
    counter = counter_for()
    return counter, counter.count(text) if len(text) <= _COUNTED_INLINE else await count_aside(counter.count, text)
