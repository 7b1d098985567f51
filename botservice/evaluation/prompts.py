"""The prompt of a case that is written by hand: the agent builds it, of a conversation that is gone right after."""

from collections.abc import Sequence
from datetime import datetime
from functools import partial

from sqlalchemy import Connection

from botservice.again.asking import offered_tools
from botservice.again.changes import Changes
from botservice.agents import Agent, Prompt
from botservice.agents.functions_based import FunctionsBasedAgent
from botservice.contexts.context import AgentContext
from botservice.errors import BotServiceError
from botservice.evaluation.cases import Case
from botservice.llm.chat import ChatMessage
from botservice.messages import Author
from botservice.people.facts import Fact, Refused, keep_fact
from botservice.people.identities import ensure_identity, note_audience
from botservice.storage import Storage
from botservice.tools import Tool

_AUTHOR = "you"


async def build(agent: Agent, case: Case, changes: Changes) -> tuple[Sequence[ChatMessage], dict[str, Tool]]:
    """Return the prompt of a case, and the tools that are offered.

    Raises:
        BotServiceError: the agent builds no prompts, or a fact cannot be kept.
    """
    if not isinstance(agent, FunctionsBasedAgent):
        raise BotServiceError(f"{type(agent).__name__} builds no prompts: cases can be past turns alone")
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"transport": "eval", "chat_id": "1"})
        tools = dict(await offered_tools(agent, context))
        if case.messages:
            return _given(agent, context, case, changes), tools
        author = Author("eval", "1", case.author or _AUTHOR)
        await _tell_facts(context, author, case)
        for role, text in case.history:
            if role == "user":
                await context.chat_history.append_user_message(text, author=author)
            else:
                await context.chat_history.append_assistant_message(text)
        await context.chat_history.append_user_message(case.question, author=author)
        prompt: Prompt = await agent.build_prompt(context)
        return changes.apply(prompt, prompt.sections(), [agent.prompt]), tools


def _given(agent: FunctionsBasedAgent, context: AgentContext, case: Case, changes: Changes) -> list[ChatMessage]:
    """Return the messages of a case, below what stands at the top of all prompts where they have nothing there."""
    top = context.system_prompt_for(agent.prompt, agent.skills.prompt)
    own = [] if case.messages[0].get("role") == "system" or not top else [{"role": "system", "content": top}]
    return changes.apply([*own, *case.messages], {}, [agent.prompt])


async def _tell_facts(context: AgentContext, author: Author, case: Case) -> None:
    """Store facts about an author, said in a private conversation of their own."""
    storage = context.storage
    private = await AgentContext.get_or_create(storage, {"transport": "eval", "chat_id": "facts"})
    for fact in case.facts:
        await private.chat_history.append_user_message(fact, author=author)
        now = storage.now()
        kept = await storage.write(partial(_keep, places=(private.id, context.id), author=author, text=fact, now=now))
        if isinstance(kept, Refused):
            raise BotServiceError(f"a fact of case {case.name!r} is not kept: {kept.value}")


def _keep(connection: Connection, places: tuple[int, int], author: Author, text: str, now: datetime) -> Fact | Refused:
    identity = ensure_identity(connection, author, now)
    for context_id in places:
        note_audience(connection, context_id, [(author, identity)], is_private=True)
    return keep_fact(connection, places[0], author, text, text, now)
