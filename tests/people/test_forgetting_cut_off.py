"""Whoever is cut off while they forget finds what is left when it is asked again: afterwards not one byte is kept."""

from datetime import timedelta

import pytest
from people.asking import CutOff
from people.conversing import ALICE, BOB, NOW, open_chat, say
from people.crowd import find_bytes
from sqlalchemy import Connection, update
from turns.answered import answer_often, work_with

from botservice import AgentContext, Author, Storage, StorageError
from botservice.core.errors import StorageUnavailable
from botservice.core.message_references import Reference, ReferenceKind
from botservice.people.fact_keeping import keep_fact
from botservice.people.fact_queries import share_fact
from botservice.people.facts import Fact
from botservice.people.queries import find_identity
from botservice.privacy.forgetting import forget_chat, forget_messages, forget_person
from botservice.storage.tables.conversations import messages

FACT = "the dog is called zx81rex"
SAID = f"look: {FACT}, and so it was and so it will be"
ANSWER = "I see that zq70rex is a dog of yours"
BOT = Author("telegram", "99", "Bot")
HIDDEN = Author("telegram", None, "somebody else's name")
TIMES = 105  # more than one bite of turns, and of messages


async def prepare(storage: Storage, *people: Author) -> tuple[AgentContext, AgentContext]:
    """Have Alice say what is known of her from then on, and much besides; return the chat, and another of hers."""
    chat, other = await open_chat(storage, "telegram-1", *people), await open_chat(storage, "telegram-2", ALICE)
    await say(chat, SAID, ALICE)
    known = await storage.write(lambda connection: keep_fact(connection, chat.id, ALICE, "dog", FACT, NOW))
    assert isinstance(known, Fact)

    def write(connection: Connection) -> None:
        identity = find_identity(connection, ALICE)
        assert identity is not None
        share_fact(connection, identity.person_id, known.id, is_shareable=True)
        answer_often(connection, chat.id, ALICE, TIMES, NOW)
        connection.execute(update(messages).where(messages.c.text == "answer 0").values(text=ANSWER))
        work_with(connection, other.id, FACT, NOW)

    await say(other, "hello", ALICE, at=NOW - timedelta(days=1))
    await storage.write(write)
    return chat, other


async def ask_until_done(storage: Storage, forget) -> int:
    """Ask again and again, cut off before a write each time, one write later; return how often that was."""
    writes = 0
    while True:
        try:
            await forget(CutOff(storage, writes))
        except StorageUnavailable:
            writes += 1
        else:
            await storage.scrub(patience_seconds=60)
            return writes


WAYS = {
    "a person": ((ALICE,), lambda storage, _: forget_person(storage, ALICE)),
    "a person in a group": ((ALICE, BOB), lambda storage, _: forget_person(storage, ALICE)),
    "a chat": ((ALICE,), lambda storage, chat: forget_chat(storage, chat.id)),
    "a chat of others": ((ALICE, BOB), lambda storage, chat: forget_chat(storage, chat.id)),
    "what they said": ((ALICE, BOB), lambda storage, chat: forget_messages(storage, chat.id, ALICE)),
}


@pytest.mark.parametrize(("people", "forget"), WAYS.values(), ids=WAYS)
@pytest.mark.slow
async def test_nothing_is_left_of_what_was_forgotten_with_a_cut_before_each_write(storage, people, forget):
    chat, other = await prepare(storage, *people)
    if BOB in people:
        await say(chat, "good evening", BOB)
    assert len(await find_bytes(storage, FACT)) >= 6
    cuts = await ask_until_done(storage, lambda cut: forget(cut, chat))
    assert cuts >= 4
    assert await find_bytes(storage, FACT) == []
    if forget is WAYS["a chat"][1]:
        assert [each.text for each in await other.chat_history.messages()] == ["hello"]


class CutBehind:
    """A storage with which something happens before one of the writes, and whose process ends before the next."""

    def __init__(self, storage: Storage, number: int, happen) -> None:
        self._storage, self._left, self._happen = storage, number, happen

    def __getattr__(self, name):
        return getattr(self._storage, name)

    async def write(self, operation, **options):
        if self._left == 0:
            raise StorageUnavailable("cut off")
        self._left -= 1
        if self._left == 0:
            await self._happen()
        return await self._storage.write(operation, **options)


FORWARDED = Reference(ReferenceKind.FORWARD, HIDDEN, SAID)
ANSWERED = Reference(ReferenceKind.FORWARD, BOT, ANSWER, is_of_assistant=True)


@pytest.mark.parametrize(
    ("people", "held"),
    [
        pytest.param((ALICE,), FORWARDED, id="a chat of their own-what they said"),
        pytest.param((ALICE, BOB), ANSWERED, id="a group-an answer"),
        # Each kind of chat and each kind of words has been on both databases by now.
        pytest.param((ALICE,), ANSWERED, id="a chat of their own-an answer", marks=pytest.mark.any_database),
        pytest.param((ALICE, BOB), FORWARDED, id="a group-what they said", marks=pytest.mark.any_database),
    ],
)
@pytest.mark.slow
async def test_what_is_carried_elsewhere_before_its_words_go_is_found_after_a_cut(storage, people, held):
    his = await open_chat(storage, "telegram-b", BOB)
    carried, number = True, 0
    while carried:
        chat, _ = await prepare(storage, *people)
        if BOB in people:
            await say(chat, "good evening", BOB)
        carried, number = False, number + 1

        async def carry(chat=chat):
            nonlocal carried
            carried = any(held.text == each.text for each in await chat.chat_history.messages())
            if carried:
                await say(his, "and this?", BOB, held)

        with pytest.raises(StorageUnavailable):
            await forget_person(CutBehind(storage, number, carry), ALICE)
        await forget_person(storage, ALICE)
        texts = [each.full_text for each in await his.chat_history.messages()]
        assert held.text not in str(texts)
    assert number > 2
    assert len(texts) == number - 1
    with pytest.raises(StorageError, match="no message"):
        await forget_person(storage, ALICE)
