"""Any server that speaks chat.completions, through the openai client."""

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

import openai
from openai import AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from botservice.errors import LLMError
from botservice.llm.chat import ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.llm.openai_answers import StreamedAnswer, read_completion
from botservice.llm.openai_clients import OpenAIClients
from botservice.llm.openai_errors import translate
from botservice.settings import ModelSettings

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "gpt-5.5"


class OpenAIChatLLM:
    """A model behind OpenAI's API or any server that speaks it.

    Attributes:
        model: The model's name, as the server knows it.
        timeout_seconds: How long the server may send nothing.
        max_answer_tokens: How long an answer may become; None for what the server allows.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float | None = None,
        max_answer_tokens: int | None = None,
    ) -> None:
        """Make a client; what is not given is a setting: OPENAI_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY.

        Args:
            max_answer_tokens: How long an answer may become (MAX_ANSWER_TOKENS, what the server allows).
            timeout_seconds: How long the server may send nothing (MODEL_TIMEOUT_SECONDS, 120).

        Raises:
            SettingsError: there is neither a key nor a base URL, or a setting is wrong.
        """
        settings = ModelSettings.load()
        self.model = model or settings.openai_model or DEFAULT_MODEL
        self._clients = OpenAIClients(settings, base_url=base_url, api_key=api_key)
        self.timeout_seconds = timeout_seconds or settings.model_timeout_seconds
        self.max_answer_tokens = max_answer_tokens or settings.max_answer_tokens
        self._includes_usage = True

    def __repr__(self) -> str:
        return f"OpenAIChatLLM({self.model!r}, base_url={self._clients.base_url!r})"

    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, on_text: TextSink | None = None
    ) -> ChatResponse:
        """Return the model's answer (see `ChatLLM.chat`)."""
        body: dict[str, Any] = {"messages": list(messages)}
        if tools:
            body["tools"] = list(tools)
        if self.max_answer_tokens is not None:
            body["max_completion_tokens"] = self.max_answer_tokens
        if self._includes_usage:
            try:
                return await self._ask(body | {"stream_options": {"include_usage": True}}, on_text)
            except LLMError as error:
                if not _is_about_usage(error.__cause__):
                    raise
                self._includes_usage = False  # an older server: it answers without counting
        return await self._ask(body, on_text)

    async def close(self) -> None:
        """Close the connections of the running loop; those of other loops have ended with them."""
        await self._clients.close()

    async def _ask(self, body: dict[str, Any], on_text: TextSink | None) -> ChatResponse:
        try:
            return await self._send(body, on_text)
        except LLMError:
            raise
        except TimeoutError as error:
            raise LLMError(f"the model sent nothing for {self.timeout_seconds:g} seconds") from error
        except openai.OpenAIError as error:
            raise translate(error, self.model) from error
        except Exception as error:  # a border: what a server sends can be anything
            logger.warning("model.unreadable", exc_info=True)
            raise LLMError(f"the model's answer could not be read ({type(error).__name__})") from error

    async def _send(self, body: dict[str, Any], on_text: TextSink | None) -> ChatResponse:
        """The one place that sends. Messages travel in extra_body: the client's typed way costs five times the CPU."""
        clock = asyncio.get_running_loop().time
        async with asyncio.timeout(self.timeout_seconds) as limit:
            raw = await self._clients.current().chat.completions.with_raw_response.create(
                model=self.model, messages=[], stream=True, extra_body=body
            )
            if "json" in raw.headers.get("content-type", ""):  # a server that does not stream
                whole = json.loads(await raw.http_response.aread())
                return read_completion(ChatCompletion.construct(**whole), on_text)
            answer = StreamedAnswer()
            stream: AsyncStream[ChatCompletionChunk] = raw.parse()
            async with stream:
                async for chunk in stream:
                    limit.reschedule(clock() + self.timeout_seconds)
                    answer.add(chunk, on_text)
        return answer.response()


def _is_about_usage(error: BaseException | None) -> bool:
    return isinstance(error, openai.BadRequestError | openai.UnprocessableEntityError) and "stream_options" in str(
        error
    )
