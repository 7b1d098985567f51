"""Requests of MCP servers for the model (sampling): allowed per server in mcp.json, bounded, and usage of the asker.

The model sees what the server sends and nothing of the conversation. It works as an agent of the turn does, so its
calls are reserved, counted and recorded as those are.
"""

from typing import TYPE_CHECKING, Any, Final

from botservice.agent.agent import AgentTool
from botservice.agent.functions_based_agent import FunctionsBasedAgent
from botservice.conversation.context import AgentContext
from botservice.core.messages import storable
from botservice.llm.chat import ChatLLM
from botservice.mcp.elicitation import QuestionRefused

if TYPE_CHECKING:
    from mcp.types import CreateMessageRequestParams

MOST_REQUESTS: Final = 5  # of one call
_LONGEST: Final = 16_000  # characters of one request
_CHARACTERS_OF_A_TOKEN: Final = 4


class Sampler:
    """Answers the requests of one call."""

    def __init__(self, llm: ChatLLM, context: AgentContext) -> None:
        self._llm = llm
        self._context = context
        self._count = 0

    async def answer(self, params: "CreateMessageRequestParams") -> dict[str, Any]:
        """Return the model's answer as the protocol writes it.

        Raises:
            QuestionRefused: it asks for more than text, or for too much.
            LLMError: the model did not answer.
            BudgetExceeded: a budget does not reach.
        """
        self._count += 1
        if self._count > MOST_REQUESTS:
            raise QuestionRefused(f"it asks the model more than {MOST_REQUESTS} times in one call")
        if self._context.delegate is None or params.tools:
            raise QuestionRefused("it asks the model for more than text")
        said = [f"{each.role}: {_text_of(each.content)}" for each in params.messages]
        task = _text_of(params.messages[0].content) if len(said) == 1 else "\n\n".join(said)
        prompt = params.system_prompt or ""
        if not task.strip() or len(task) + len(prompt) > _LONGEST:
            raise QuestionRefused(f"it asks the model nothing, or with more than {_LONGEST} characters")
        agent = FunctionsBasedAgent(llm=self._llm, search_k=0, prompt=storable(prompt), max_steps=0)
        tool = AgentTool(agent, name="sampling", description="Answer a server.", max_steps=0)
        output = str(await self._context.delegate(tool, storable(task))())
        limit = max(1, params.max_tokens) * _CHARACTERS_OF_A_TOKEN
        return {
            "role": "assistant",
            "content": {"type": "text", "text": output[:limit]},
            "model": self._llm.models[0],
            "stopReason": "endTurn" if len(output) <= limit else "maxTokens",
        }


def _text_of(content: Any) -> str:
    parts = content if isinstance(content, list) else [content]
    if any(each.type != "text" for each in parts):
        raise QuestionRefused("it asks the model about more than text")
    return "\n".join(each.text for each in parts)
