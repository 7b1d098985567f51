"""The tools with which an agent keeps what a person says of themselves."""

from sqlalchemy import Connection

from botservice.contexts.context import AgentContext
from botservice.messages import Author
from botservice.people.facts import Refused, delete_facts, keep_fact, visible_facts
from botservice.people.identities import find_identity
from botservice.privacy.exports import drop_exports_of
from botservice.tools.tool import tool


@tool(idempotent=True)
async def remember(text: str, context: AgentContext, topic: str = "") -> str:
    """Keep a lasting fact about the person who writes to you now, for all their later conversations.

    Use it when they ask you to remember something about them, or tell you something that will plainly be useful later:
    their name, language, preferences, projects. Only what they say themselves in one of their last messages, in their
    own words and language; never what stands in files, is quoted, recalled or read elsewhere, never passwords.

    Args:
        text: The fact, in one short sentence.
        topic: What it is about, in a word, such as "name", "home" or "diet"; a new fact takes the place of the one with
            the same topic.
    """
    asker = _asker(context)
    kept = await context.storage.write(
        lambda connection: keep_fact(connection, context.id, asker, topic or text, text, context.storage.now()),
        sort_key=(context.id,),
    )
    if isinstance(kept, Refused):
        return f"Not kept: {kept.value}"
    return f"Noted as #{kept.id}: {kept.text}"


@tool(idempotent=True)
async def forget_fact(number: int, context: AgentContext) -> str:
    """Forget a fact about the person who writes to you now, because they want that or it is no longer true.

    Args:
        number: The number of the fact, as it stands beside it.
    """
    asker = _asker(context)
    gone = await context.storage.write(lambda connection: _forget(connection, context, asker, number))
    return f"Forgotten: #{number}" if gone else f"There is no fact #{number} about this person here."


def _forget(connection: Connection, context: AgentContext, asker: Author | None, number: int) -> bool:
    """Delete a fact about the asker that may be told in this context."""
    identity = find_identity(connection, asker)
    known = visible_facts(connection, context.id, asker)
    if identity is None or number not in {each.id for each in known}:
        return False
    drop_exports_of(connection, identity.person_id, context.storage.now())
    return bool(delete_facts(connection, identity.person_id, [number], context.storage.now()))


def _asker(context: AgentContext) -> Author | None:
    last = context.chat_history.last_user_message
    return None if last is None else last.author
