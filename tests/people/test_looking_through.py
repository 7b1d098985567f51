"""What grows with a chat is looked through before whoever writes waits for it: then only what came since."""

from sqlalchemy import Connection, update

from botservice import AgentContext, Author, Storage
from botservice.privacy.quotes import find_quotes, look_through
from botservice.privacy.said import read_said
from botservice.storage.tables.conversations import messages

ANN = Author("telegram", "1", "Ann")
SECRET = "my grandmother's name is Wilhelmina"


async def test_only_answers_that_came_since_are_looked_through_again(storage: Storage) -> None:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "-5"})
    history = context.chat_history
    asked = await history.append_user_message(SECRET, author=ANN)
    repeating = await history.append_assistant_message(f"You told me that {SECRET}")
    other = await history.append_assistant_message("Nothing of it")

    def look(connection: Connection) -> object:
        return look_through(connection, context.id, read_said(connection, context.id, [asked.id], [ANN]))

    looked = await storage.read(look)
    later = await history.append_assistant_message(f"As I said: {SECRET}")

    def find(connection: Connection) -> tuple[list[int], list[int]]:
        # Nothing changes what an answer says: where this one is not seen, it was not read again.
        change = update(messages).where(messages.c.id == other.id).values(text=SECRET)
        connection.execute(change)
        said = read_said(connection, context.id, [asked.id], [ANN])
        anew = find_quotes(connection, context.id, said)
        found = find_quotes(connection, context.id, said, looked=[looked])  # type: ignore[list-item]
        return sorted(anew.answers), sorted(found.answers)

    anew, found = await storage.write(find)
    assert anew == [repeating.id, other.id, later.id]
    assert found == [repeating.id, later.id]


async def test_what_was_looked_for_less_is_looked_through_anew(storage: Storage) -> None:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "-5"})
    history = context.chat_history
    first = await history.append_user_message(SECRET, author=ANN)
    answer = await history.append_assistant_message("And you live in Rotterdam, at the harbour")
    looked = await storage.read(
        lambda connection: look_through(connection, context.id, read_said(connection, context.id, [first.id], [ANN]))
    )
    assert looked is not None
    second = await history.append_user_message("you live in Rotterdam, at the harbour", author=ANN)
    found = await storage.read(
        lambda connection: find_quotes(
            connection, context.id, read_said(connection, context.id, [first.id, second.id], [ANN]), looked=[looked]
        )
    )
    assert answer.id in found.answers
