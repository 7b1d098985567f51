"""Small conversations for the tests of persons."""

from dataclasses import replace
from datetime import UTC, datetime

from sqlalchemy import update

from botservice import AgentContext, AgentService, Author, FunctionsBasedAgent, NoMessages, ScriptedChatLLM, Storage
from botservice.agent.remembering import forget_fact, remember
from botservice.core.message_references import Reference
from botservice.core.messages import Button, CommandCall, InboundMessage, Message, Role
from botservice.core.states import TurnStatus
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.people.queries import ensure_identity, note_audience
from botservice.storage.tables.conversations import messages
from botservice.turns.commands import CommandAnswer, CommandRequest
from botservice.turns.queries import insert_turn
from botservice.turns.turn import Turn

ALICE = Author("telegram", "1", "Alice")
ALICE_ON_SLACK = Author("slack", "T1/U1", "Alice S.")
BOB = Author("telegram", "2", "Bob")
OTHER_ALICE = Author("slack", "T1/U9", "Alice")
NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)


def make_service(storage, script, *, tools=(remember, forget_fact), search_k=0, selector=None):
    """Return a service with a scripted model, and that model."""
    llm = script if isinstance(script, ScriptedChatLLM) else ScriptedChatLLM(script)
    agent = FunctionsBasedAgent(
        tools=tools, llm=llm, search_k=search_k, message_selector=selector or NoMessages(), prompt="You are X"
    )
    return AgentService(agent, storage), llm


async def open_chat(storage: Storage, name: str, *people: Author) -> AgentContext:
    """Return a chat in which these people were seen: a group where there is more than one."""
    context = await AgentContext.get_or_create(storage, {"transport": name.partition("-")[0], "chat_id": name})
    await see(storage, context, *people, is_private=len(people) < 2)
    return context


async def see(storage: Storage, context: AgentContext, *people: Author, is_private: bool = True) -> None:
    """Have people be seen in a chat."""

    def write(connection):
        heard = [(each, ensure_identity(connection, each, NOW)) for each in people]
        note_audience(connection, context.id, heard, is_private=is_private)

    await storage.write(write)


async def say(context: AgentContext, text: str, author: Author, *references: Reference, **more) -> Message:
    """Have a person say something in a chat that may hold what others said."""
    new = NewMessage(Role.USER, text, more.pop("at", NOW), author, references=references, **more)
    return await context.storage.write(lambda connection: insert_message(connection, context.id, new))


async def make_older(storage: Storage) -> None:
    """Have all messages be as an earlier version stored them: what they hold of others is nothing but text."""
    await storage.write(lambda connection: connection.execute(update(messages).values(said_by_others=None)))


async def command(
    context: AgentContext, text: str, author: Author, commands, *, is_private=True, now=NOW
) -> CommandAnswer:
    """Have a person give a command in a chat, and return the answer, with its changes made."""
    name, _, arguments = text.removeprefix("/").partition(" ")
    message = InboundMessage(text, author, command=CommandCall(name, arguments), is_private=is_private, created_at=NOW)
    number = await context.storage.write(lambda c: insert_turn(c, context.id, "test", NOW, status=TurnStatus.DONE))
    turn = Turn(number, context.id, TurnStatus.RUNNING, "test", 1, NOW)
    claim = await context.storage.claims.try_claim(context.id)
    assert claim is not None
    try:
        request = CommandRequest(message.command, message, context, turn, claim, now)
        answer = await commands.answer(request)
        if answer.apply is not None:
            await context.storage.write(answer.apply)
        if answer.after is not None:
            await answer.after()
    finally:
        await context.storage.claims.release(claim)
    shown = answer.as_message(now)  # as words alone
    return replace(answer, text="" if shown is None else shown.text)


def values(buttons: tuple[Button, ...]) -> list[str]:
    """Return what buttons say."""
    return [button.says for button in buttons]
