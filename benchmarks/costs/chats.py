"""Chats to ask in, and the service that is asked: with all that it does by default."""

import random
import time
from datetime import UTC, datetime, timedelta

from model_calls import MODEL
from sqlalchemy import insert, text, update

from botservice import AgentContext, AgentService, FunctionsBasedAgent, MessageWindowMessageSelector, tool
from botservice.llm.tokens import counter_for
from botservice.storage.tables.conversations import contexts, messages

WINDOW = 20
WORDS = ("the harbour lamp was green when we came home and somebody had put bread on the table").split()  # noqa: SIM905
_AT_ONCE = 500
_SYLLABLES = [first + second for first in "bcdfghjklmnpqrstvwxz" for second in "aeiou"]
_TELLING = 30  # the first rank of words that a question is about
_SIZES = {
    True: "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    False: "SELECT pg_database_size(current_database())",
}


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def word(rank):
    """Return one of very many words, by how frequent it is: 1 for the most frequent one."""
    number, letters = rank * 7_919, []
    while number:
        number, place = divmod(number, len(_SYLLABLES))
        letters.append(_SYLLABLES[place])
    return "".join(letters)


def sentence(number, words=0):
    """Return some words that differ from message to message, a rank half as often as the one of half its number.

    Args:
        words: Of how many, as people's words are; 0 for a few.
    """
    if words:
        chance = random.Random(number)
        return " ".join(word(int(words ** chance.random())) for _ in range(12))
    return " ".join(WORDS[(number * step + step) % len(WORDS)] for step in range(1, 13)) + f" {number}"


def question(number, words=0):
    """Return what is asked, another thing each time; no words that are as frequent as those that tell nothing."""
    if words:
        chance = random.Random(-number - 1)
        asked = (word(int(_TELLING * (words / _TELLING) ** chance.random())) for _ in range(4))
        return f"what about {' '.join(asked)}?"
    return f"what about number {number} and the {WORDS[number % len(WORDS)]}?"


def make_service(storage, llm):
    """Return a service that stores everything, with a window of 20 messages, search over the chat, and a tool."""
    selector = MessageWindowMessageSelector(WINDOW)
    return AgentService(FunctionsBasedAgent(tools=[add], llm=llm, search_k=20, message_selector=selector), storage)


async def new_chat(storage, count, words=0):
    """Return a new conversation with count messages, as if people had written them, of so many words."""
    context = await AgentContext.get_or_create(storage, {"id": f"{count}-{time.time_ns()}"})
    begun, counter = datetime(2026, 1, 1, tzinfo=UTC), counter_for(MODEL)

    def write(connection, first, last):
        rows = [
            {
                "context_id": context.id,
                "position": number + 1,
                "role": "user" if number % 2 == 0 else "assistant",
                "text": sentence(number, words),
                "created_at": begun + timedelta(minutes=number),
                "token_count": counter.count(sentence(number, words)),
                "token_encoding": counter.name,
            }
            for number in range(first, last)
        ]
        connection.execute(insert(messages), rows)
        connection.execute(
            update(contexts).where(contexts.c.id == context.id).values(last_position=last, message_count=last)
        )

    for first in range(0, count, _AT_ONCE):
        last = min(count, first + _AT_ONCE)
        await storage.write(lambda connection, first=first, last=last: write(connection, first, last))
    return context


async def size(storage):
    """Return the bytes of the database."""
    query = text(_SIZES[storage.is_sqlite])
    return await storage.read(lambda connection: connection.execute(query).scalar_one())
