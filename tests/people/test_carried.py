"""What others carried of a person into other chats is forgotten too, though nothing says there whose it is."""

import pytest
from people.conversing import ALICE, BOB, NOW, open_chat, say

from botservice import Author
from botservice.core.message_references import Reference, ReferenceKind
from botservice.core.messages import Role
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.privacy.forgetting import forget_messages, forget_person

WORDS = "the safe opens with carried4711"
ANSWER = f"I see: {WORDS}"
BOT = Author("telegram", "99", "Bot")
HIDDEN = Author("telegram", None, "somebody else's name")


async def talk(storage, *held):
    """Have her say something that is answered, and Bob hold something in a chat of his."""
    chat, his = await open_chat(storage, "telegram-g", ALICE, BOB), await open_chat(storage, "telegram-b", BOB)
    said = await say(chat, WORDS, ALICE)
    answer = NewMessage(Role.ASSISTANT, ANSWER, NOW)
    await storage.write(lambda c: insert_message(c, chat.id, answer))
    await say(his, "look", BOB, *held)
    return chat, his, said


async def texts(chat):
    return [each.full_text for each in await chat.chat_history.messages()]


@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize(
    "held",
    [
        Reference(ReferenceKind.FORWARD, HIDDEN, WORDS),
        Reference(ReferenceKind.FORWARD, BOT, ANSWER, is_of_assistant=True),
        Reference(ReferenceKind.SHARE, BOT, ANSWER, "1700.01", is_of_assistant=True),
        Reference(ReferenceKind.REPLY, None, ANSWER, is_of_assistant=True),
    ],
)
async def test_what_is_carried_into_another_chat_is_forgotten_there(storage, held, whole):
    chat, his, said = await talk(storage, held)
    assert WORDS in str(await texts(his))
    await (forget_person(storage, ALICE) if whole else forget_messages(storage, chat.id, [said.id]))
    assert WORDS not in str(await texts(his))
    assert "look" in str(await texts(his))


@pytest.mark.any_database
@pytest.mark.parametrize(
    "held",
    [
        Reference(ReferenceKind.FORWARD, HIDDEN, "the safe"),
        Reference(ReferenceKind.FORWARD, BOT, "I see", is_of_assistant=True),
        Reference(ReferenceKind.FORWARD, HIDDEN, "the safe opens with something of another"),
        Reference(ReferenceKind.FORWARD, BOB, WORDS),
    ],
)
async def test_what_may_be_anybodys_stays(storage, held):
    _, his, _ = await talk(storage, held)
    before = await texts(his)
    await forget_person(storage, ALICE)
    assert await texts(his) == before


class AtWrite:
    """A storage in which something happens before one of the writes."""

    def __init__(self, storage, number, happen):
        self._storage, self._left, self._happen = storage, number, happen

    def __getattr__(self, name):
        return getattr(self._storage, name)

    async def write(self, operation, **options):
        self._left -= 1
        if self._left == 0:
            await self._happen()
        return await self._storage.write(operation, **options)


@pytest.mark.parametrize(("whole", "number"), [(True, 1), (True, 2), (True, 3), (False, 1)])
async def test_what_is_carried_elsewhere_while_it_is_forgotten_goes_as_well(storage, whole, number):
    chat, his, said = await talk(storage)

    async def carry():
        await say(his, "and this?", BOB, Reference(ReferenceKind.FORWARD, HIDDEN, WORDS))

    meanwhile = AtWrite(storage, number, carry)
    await (forget_person(meanwhile, ALICE) if whole else forget_messages(meanwhile, chat.id, [said.id]))
    assert WORDS not in str(await texts(his))
    assert "and this?" in str(await texts(his))
