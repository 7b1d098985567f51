"""Any server that speaks chat.completions, through the openai client."""

import asyncio
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import openai
from openai import AsyncOpenAI, AsyncStream
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from botservice.errors import ContextOverflow, LLMError, SettingsError
from botservice.llm.chat import ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.messages import TokenUsage, ToolCall

DEFAULT_MODEL = "gpt-5.5"
DEFAULT_TIMEOUT_SECONDS = 120.0


class OpenAIChatLLM:
    """A model behind OpenAI's API or any server that speaks it.

    Attributes:
        model: The model's name, as the server knows it.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_seconds: float | None = None,
    ) -> None:
        """Make a client; what is not given comes from OPENAI_MODEL, OPENAI_BASE_URL and OPENAI_API_KEY.

        Args:
            timeout_seconds: How long the server may send nothing (MODEL_TIMEOUT_SECONDS, 120).

        Raises:
            SettingsError: there is neither a key nor a base URL.
        """
        environment = os.environ
        self.model = model or environment.get("OPENAI_MODEL") or DEFAULT_MODEL
        base_url = base_url or environment.get("OPENAI_BASE_URL") or None
        api_key = api_key or environment.get("OPENAI_API_KEY") or None
        if api_key is None and base_url is None:
            raise SettingsError("OPENAI_API_KEY must be set, or OPENAI_BASE_URL for a server that needs no key")
        self.timeout_seconds = timeout_seconds or float(
            environment.get("MODEL_TIMEOUT_SECONDS") or DEFAULT_TIMEOUT_SECONDS
        )
        # Retries are the service's: it knows how long a person has waited.
        self._arguments: dict[str, Any] = {
            "api_key": api_key or "none",
            "base_url": base_url,
            "max_retries": 0,
            "timeout": openai.Timeout(self.timeout_seconds, connect=10.0),
        }
        self._clients: dict[asyncio.AbstractEventLoop, AsyncOpenAI] = {}
        self._can_include_usage = True

    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, on_text: TextSink | None = None
    ) -> ChatResponse:
        """Return the model's answer (see `ChatLLM.chat`)."""
        try:
            return await self._send(messages, tools, on_text)
        except openai.BadRequestError as error:
            if not self._can_include_usage or "stream_options" not in str(error):
                raise _translate(error) from error
            self._can_include_usage = False  # an older server: it answers without counting
            return await self.chat(messages, tools, on_text=on_text)
        except TimeoutError as error:
            raise LLMError(f"the model sent nothing for {self.timeout_seconds:g} seconds") from error
        except LLMError:
            raise
        except Exception as error:  # a border: what a server sends can fail in the client in many ways
            raise _translate(error) from error

    async def close(self) -> None:
        """Close the connections."""
        clients, self._clients = self._clients, {}
        for client in clients.values():
            await client.close()

    async def _send(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema], on_text: TextSink | None
    ) -> ChatResponse:
        """The one place that sends. Messages travel in extra_body: the client's typed way costs five times the CPU."""
        body: dict[str, Any] = {"messages": list(messages)}
        if tools:
            body["tools"] = list(tools)
        if self._can_include_usage:
            body["stream_options"] = {"include_usage": True}
        async with asyncio.timeout(self.timeout_seconds) as limit:
            raw = await self._client().chat.completions.with_raw_response.create(
                model=self.model, messages=[], stream=True, extra_body=body
            )
            if "json" in raw.headers.get("content-type", ""):  # a server that does not stream
                return _read_completion(json.loads(await raw.http_response.aread()), on_text)
            collected = _Collected()
            stream: AsyncStream[ChatCompletionChunk] = raw.parse()
            async with stream:
                async for chunk in stream:
                    limit.reschedule(asyncio.get_running_loop().time() + self.timeout_seconds)
                    collected.add(chunk, on_text)
        return collected.response()

    def _client(self) -> AsyncOpenAI:
        """Return the client of the running loop: connections do not travel between loops."""
        loop = asyncio.get_running_loop()
        client = self._clients.get(loop)
        if client is None:
            self._clients = {known: one for known, one in self._clients.items() if not known.is_closed()}
            client = self._clients[loop] = AsyncOpenAI(**self._arguments)
        return client


@dataclass
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class _Collected:
    """An answer that arrives in pieces."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: dict[int, _PartialCall] = {}
        self._usage: TokenUsage | None = None
        self._is_finished = False

    def add(self, chunk: ChatCompletionChunk, on_text: TextSink | None) -> None:
        if chunk.usage is not None:
            self._usage = TokenUsage(chunk.usage.prompt_tokens or 0, chunk.usage.completion_tokens or 0)
        for choice in (chunk.choices or [])[:1]:
            self._is_finished = self._is_finished or choice.finish_reason is not None
            delta = choice.delta
            if delta is None:
                continue
            piece = delta.content or delta.refusal
            if piece:
                self._text.append(piece)
                if on_text is not None:
                    on_text(piece)
            for part in delta.tool_calls or ():
                self._add_call(part)

    def _add_call(self, part: Any) -> None:
        index = part.index if part.index is not None else len(self._calls)
        call = self._calls.setdefault(index, _PartialCall())
        call.id = part.id or call.id
        if part.function is not None:
            call.name = part.function.name or call.name
            call.arguments.append(part.function.arguments or "")

    def response(self) -> ChatResponse:
        if not self._is_finished:
            raise LLMError("the model's answer broke off")
        calls = tuple(
            read_tool_call(call.id or f"call_{index}", call.name, "".join(call.arguments))
            for index, call in sorted(self._calls.items())
        )
        return ChatResponse("".join(self._text), calls, self._usage)


def read_tool_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """Return the call that a model wrote; arguments that are no JSON object are kept as malformed."""
    try:
        parsed = json.loads(arguments) if arguments.strip() else {}
    except (json.JSONDecodeError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        return ToolCall(call_id, name, {}, malformed_arguments=arguments)
    return ToolCall(call_id, name, parsed)


def _read_completion(body: dict[str, Any], on_text: TextSink | None) -> ChatResponse:
    completion = ChatCompletion.model_validate(body)
    if not completion.choices:
        raise LLMError("the model's answer has no choices")
    message = completion.choices[0].message
    text = message.content or message.refusal or ""
    if text and on_text is not None:
        on_text(text)
    calls = tuple(
        read_tool_call(call.id, call.function.name, call.function.arguments)
        for call in message.tool_calls or ()
        if call.type == "function"
    )
    usage = completion.usage
    return ChatResponse(text, calls, usage and TokenUsage(usage.prompt_tokens, usage.completion_tokens))


def _translate(error: Exception) -> LLMError:
    """Return the error in the service's words, without anything that the server repeats of the request."""
    if isinstance(error, openai.BadRequestError) and _is_overflow(error):
        return ContextOverflow("the prompt is longer than the model's context window")
    if isinstance(error, openai.APITimeoutError):
        return LLMError("the model sent nothing in time")
    if isinstance(error, openai.APIConnectionError):
        return LLMError("the model's server cannot be reached")
    if isinstance(error, openai.APIStatusError):
        return LLMError(
            f"the model's server answered {error.status_code} ({error.code or type(error).__name__})",
            is_transient=error.status_code in (408, 409, 425, 429) or error.status_code >= 500,
            retry_after_seconds=_retry_after(error),
        )
    return LLMError(f"the model's answer could not be read ({type(error).__name__})")


def _is_overflow(error: openai.BadRequestError) -> bool:
    text = str(error).lower()
    return error.code == "context_length_exceeded" or "context length" in text or "context window" in text


def _retry_after(error: openai.APIStatusError) -> float | None:
    try:
        return max(0.0, float(error.response.headers.get("retry-after", "")))
    except ValueError:
        return None
