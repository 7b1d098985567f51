"""A model that is asked for something else than an answer: by the observer, and whether to speak in a group."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any, Final

from botservice.agent.shared_refusals import SharedRefusals
from botservice.core.argument_checks import adopt
from botservice.core.errors import LLMError
from botservice.core.messages import TokenUsage
from botservice.llm.asking import ask
from botservice.llm.chat import AnswerSchema, ChatLLM, ChatMessage, ChatResponse
from botservice.llm.tokens import counter_for
from botservice.people.budgets import Budgets
from botservice.people.usage import ModelCall
from botservice.storage.database import Storage

_AROUND: Final = 20  # tokens that servers put around messages


class SideModel:
    """Asks one model without tools, and says what that took.

    Attributes:
        model: The name of the model that is asked first.
        models: The names of all that may answer.
    """

    def __init__(self, llm: ChatLLM, budgets: Budgets, *, purpose: str, patience_seconds: float) -> None:
        """Make one.

        Args:
            purpose: What it is asked for, in traces and figures.
        """
        self._llm = llm = adopt(ChatLLM, llm)
        self._budgets = budgets
        self._purpose = purpose
        self._patience_seconds = patience_seconds
        self._refusals = SharedRefusals(llm)
        self.models = tuple(llm.models)
        self.model = self.models[0]

    async def ask(
        self, storage: Storage, prompt: Sequence[ChatMessage], schema: AnswerSchema | None = None
    ) -> ChatResponse:
        """Return what the model says.

        Args:
            schema: The form of the answer, for models that take one.

        Raises:
            LLMError: it did not answer.
        """
        options: dict[str, Any] = {"schema": schema} if schema is not None and self._llm.takes_schema else {}
        await self._refusals.refresh(storage)
        try:
            async with asyncio.timeout(self._patience_seconds):
                return await ask(self._llm, prompt, options=options, purpose=self._purpose)
        except TimeoutError as error:
            raise LLMError(f"the model did not answer within {self._patience_seconds:g} seconds") from error
        finally:
            await self._refusals.store(storage)

    def most_expensive(self, size: int) -> str:
        """Return the model, of those that may answer, for which most has to be reserved."""
        return self._budgets.most_expensive(self.models, size)

    def count(self, prompt: Sequence[ChatMessage]) -> int:
        """Return how many tokens a prompt takes. It may block."""
        return counter_for(self.model).count(json.dumps(list(prompt), ensure_ascii=False)) + _AROUND

    def price(self, response: ChatResponse, size: int) -> ModelCall:
        """Return the usage of a call, counted here if the server does not say. It may block."""
        usage = response.usage or TokenUsage(size, counter_for(self.model).count(response.text))
        model = response.model if response.model in self.models else self.models[0]
        return self._budgets.price(model, usage)

    async def close(self) -> None:
        """Close the connections of the model."""
        await self._llm.close()
