"""Forgetting a person: their own conversations whole, their messages in the others."""

from botservice import AgentContext, Author, Storage
from botservice.devtools.conversations import list_contexts
from botservice.privacy.exported_data import as_values, read_person
from botservice.privacy.forgetting import forget_person
from botservice.privacy.forgotten_counts import Forgotten

ALICE = Author("telegram", "1", "Alice")
BOB = Author("telegram", "2", "Bob")


async def converse(storage: Storage, chat: str, *said: tuple[Author | str | None, str]) -> AgentContext:
    context = await AgentContext.get_or_create(storage, {"chat": chat})
    for author, text in said:
        await context.chat_history.append_user_message(text, author=author)
        await context.chat_history.append_assistant_message(f"noted: {text}")
    return context


async def test_a_private_conversation_goes_whole_and_a_shared_one_stays(storage: Storage) -> None:
    await converse(storage, "private", (ALICE, "my secret"))
    group = await converse(storage, "group", (ALICE, "hi"), (BOB, "hello"), (ALICE, "bye"))
    nameless = await converse(storage, "nameless", (ALICE, "x"), ("Carol", "y"), (None, "z"))
    await converse(storage, "bob", (BOB, "mine"))
    assert await forget_person(storage, Author("telegram", "1")) == Forgotten(contexts=1, messages=4, answers=1)
    assert {each.keys["chat"] for each in await list_contexts(storage)} == {"group", "nameless", "bob"}
    texts = [message.text for message in await group.chat_history.messages()]
    assert texts == ["noted: hi", "hello", "noted: hello", "noted: bye"]
    assert "x" not in [message.text for message in await nameless.chat_history.messages()]


async def test_an_identity_is_a_platform_and_an_id_not_a_name(storage: Storage) -> None:
    await converse(storage, "a", (ALICE, "of telegram"), (Author("slack", "1", "Alice"), "of slack"))
    exported = as_values(await read_person(storage, Author("slack", "1")))
    assert [message["text"] for message in exported["messages"]] == ["of slack"]
    assert exported["messages"][0]["name"] == "Alice"
