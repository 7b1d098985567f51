"""What grows with a chat is looked through before whoever writes waits for it: then only what came since."""

from collections.abc import Awaitable, Callable

import pytest

from botservice import AgentContext, Author, ChatHistory, Storage
from botservice.core.messages import Role
from botservice.core.references import Reference, ReferenceKind
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.privacy.deletion_survey import Survey, is_current, survey_context
from botservice.privacy.repeated_words import read_words

ANN, BOB = Author("telegram", "1", "Ann"), Author("telegram", "2", "Bob")
SECRET = "my grandmother's name is Wilhelmina"
QUOTE = Reference(ReferenceKind.REPLY, ANN, SECRET)

Event = Callable[[ChatHistory, int], Awaitable[object]]


async def look(storage: Storage, context: AgentContext, message_id: int) -> Survey:
    return await storage.read(lambda c: survey_context(c, context.id, read_words(c, context.id, [message_id], [ANN])))


async def is_known(storage: Storage, found: Survey, message_id: int) -> bool:
    return await storage.read(lambda connection: is_current(connection, found, [message_id]))


async def say_and_delete(history: ChatHistory, _: int) -> None:
    other = await history.append_user_message("nothing", author=BOB)
    assert other.id is not None
    await history.delete_messages([other.id])


CHANGES: dict[str, Event] = {
    "an answer repeats it": lambda history, _: history.append_assistant_message(f"As I said: {SECRET}"),
    "a message was deleted": say_and_delete,
}
OTHERS: dict[str, Event] = {
    "nothing came": lambda history, _: history.messages(),
    "somebody else spoke": lambda history, _: history.append_user_message("hello", author=BOB),
    "another answer was given": lambda history, _: history.append_assistant_message("Good morning"),
}


async def begin(storage: Storage) -> tuple[AgentContext, int]:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "-5"})
    asked = await context.chat_history.append_user_message(SECRET, author=ANN)
    await context.chat_history.append_user_message("well", author=BOB)
    assert asked.id is not None
    return context, asked.id


@pytest.mark.any_database
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_what_came_since_and_is_to_go_has_it_looked_through_anew(storage: Storage, change: Event) -> None:
    context, asked = await begin(storage)
    found = await look(storage, context, asked)
    await change(context.chat_history, asked)
    assert not await is_known(storage, found, asked)


@pytest.mark.any_database
@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
async def test_what_came_since_and_stays_changes_nothing(storage: Storage, other: Event) -> None:
    context, asked = await begin(storage)
    found = await look(storage, context, asked)
    await other(context.chat_history, asked)
    assert await is_known(storage, found, asked)


@pytest.mark.any_database
async def test_what_they_said_since_has_it_looked_through_anew(storage: Storage) -> None:
    context, asked = await begin(storage)
    found = await look(storage, context, asked)
    later = await context.chat_history.append_user_message("and more", author=ANN)
    assert later.id is not None
    assert not await storage.read(lambda connection: is_current(connection, found, [asked, later.id or 0]))


async def test_a_quote_that_came_since_has_it_looked_through_anew(storage: Storage) -> None:
    context, asked = await begin(storage)
    found = await look(storage, context, asked)
    new = NewMessage(Role.USER, "see", storage.now(), BOB, references=(QUOTE,))
    await storage.write(lambda connection: insert_message(connection, context.id, new))
    assert not await is_known(storage, found, asked)
