"""Any server that speaks OpenAI's Responses or chat.completions, through the openai client."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import httpx2

from botservice.config.setting_choices import ApiChoice, ReasoningEffort, ReasoningSummary
from botservice.config.settings import ModelSettings, one_of
from botservice.core.argument_checks import check_seconds
from botservice.core.errors import LLMError, SettingsError
from botservice.llm.chat import AnswerSchema, ChatLLM, ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.llm.openai.answer_stream import AnswerStream
from botservice.llm.openai.call import OpenAICall
from botservice.llm.openai.error_table import WEB_SEARCH
from botservice.llm.openai.errors import translate
from botservice.llm.openai.http_client import OpenAIClients
from botservice.llm.openai.options import CallOptions
from botservice.llm.server_limits import ServerLimits, Wire, is_digest, is_openai

logger = logging.getLogger(__name__)

DEFAULT_MODEL = "gpt-6.1-terra"


class OpenAIChatLLM(ChatLLM):
    """A model of OpenAI or of an OpenAI-compatible server.

    Attributes:
        model: The model's name on the server.
        base_url: The address of the server.
        timeout_seconds: The longest silence of the server.
        max_answer_tokens: The most tokens of an answer; None for the server's limit.
        reasoning_effort: The effort of reasoning; None for the model's default.
        reasoning_summary: The kind of summary of its reasoning; None for none.
        temperature: The temperature; None for the server's default.
        limits: What its server does not support.
    """

    takes_schema = True

    def __init__(  # noqa: PLR0913 - each is a setting of its own
        self,
        model: str | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api: str | None = None,
        reasoning_effort: str | None = None,
        reasoning_summary: str | None = None,
        timeout_seconds: float | None = None,
        max_answer_tokens: int | None = None,
        temperature: float | None = None,
    ) -> None:
        """Make a client; what is not given is a setting: OPENAI_MODEL, OPENAI_BASE_URL, OPENAI_API_KEY.

        Args:
            api: responses, chat, or auto: Responses for OpenAI's own API, chat.completions for other servers, and the
                other one where a server says so (OPENAI_API, auto).
            reasoning_effort: none, minimal, low, medium, high, xhigh or max (OPENAI_REASONING_EFFORT, the model's own).
            reasoning_summary: off, auto, concise or detailed (OPENAI_REASONING_SUMMARY, off).
            max_answer_tokens: How long an answer may become (MAX_ANSWER_TOKENS, what the server allows).
            timeout_seconds: How long the server may send nothing (MODEL_TIMEOUT_SECONDS, 120).
            temperature: Sent where it is given; models that reason take none.

        Raises:
            SettingsError: there is neither a key nor a base URL, or a setting is wrong.
            InvalidArgument: base_url or timeout_seconds is nothing to work with.
        """
        settings = ModelSettings.load()
        self.model = model or settings.openai_model or DEFAULT_MODEL
        self._clients = OpenAIClients(settings, base_url=base_url, api_key=api_key)
        self.base_url: str = self._clients.base_url
        self.timeout_seconds = check_seconds("timeout_seconds=", timeout_seconds or settings.model_timeout_seconds)
        self.max_answer_tokens = max_answer_tokens or settings.max_answer_tokens
        effort = one_of(ReasoningEffort, "reasoning_effort", reasoning_effort) or settings.openai_reasoning_effort
        self.reasoning_effort: str | None = effort and effort.value
        summary = one_of(ReasoningSummary, "reasoning_summary", reasoning_summary) or settings.openai_reasoning_summary
        self.reasoning_summary: str | None = None if summary is ReasoningSummary.OFF else summary.value
        self.temperature = temperature
        choice = one_of(ApiChoice, "api", api) or settings.openai_api
        self._is_responses_set = choice is ApiChoice.RESPONSES
        self.limits: ServerLimits = _limits(choice, self.base_url, self.model)

    def __repr__(self) -> str:
        return f"OpenAIChatLLM({self.model!r}, base_url={self.base_url!r})"

    @property
    def clients(self) -> OpenAIClients:
        """The clients of its server."""
        return self._clients

    @property
    def api(self) -> str:
        """The API in use: responses or chat."""
        return self.limits.wire.value

    @property
    def is_openai(self) -> bool:
        """Whether the server is OpenAI's or a gateway to it, if known."""
        return self._is_responses_set or is_openai(self.base_url)

    @property
    def refused(self) -> frozenset[str]:
        """The fields, formats and kinds of input that the server does not support, by name."""
        return frozenset(name for name in self.limits.refused if not is_digest(name))

    @property
    def searches_web(self) -> bool:  # type: ignore[override] # nobody sets it
        """Whether the server may search the web itself: with Responses, unless it refused to."""
        return self.limits.wire is Wire.RESPONSES and WEB_SEARCH not in self.limits.refused

    @property
    def shows_thoughts(self) -> bool:  # type: ignore[override] # nobody sets it
        """Whether `chat` calls on_thought."""
        return self.reasoning_summary is not None

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        tools: Sequence[ToolSchema] = (),
        *,
        on_text: TextSink | None = None,
        on_thought: TextSink | None = None,
        schema: AnswerSchema | None = None,
    ) -> ChatResponse:
        """Ask the model for an answer (see `ChatLLM.chat`).

        Args:
            on_thought: Called with each part of the summary of its reasoning, if one is requested.
            schema: The format of the answer. Servers without support get none, so the prompt has to describe it too.
        """
        call = OpenAICall(messages, tools, self._options(schema), self.limits)
        while True:
            try:
                response = await self._ask(call, on_text, on_thought)
            except LLMError as error:
                if not call.adapt(error):
                    raise
                logger.info("model.asked_otherwise", extra={"reason": str(error), "api": call.wire.value})
            else:
                call.remember()
                left_out = call.left_out()
                return replace(response, left_out=left_out) if left_out else response

    def preview(self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = ()) -> dict[str, Any]:
        """Preview the request of a call: its "url" and "body"; nothing is sent."""
        call = OpenAICall(messages, tools, self._options(), self.limits)
        return {"url": self._clients.address(call.path), "body": call.body()}

    async def close(self) -> None:
        """Close the connections of the running event loop; those of other loops ended with them."""
        await self._clients.close()

    def _options(self, schema: AnswerSchema | None = None) -> CallOptions:
        return CallOptions(
            model=self.model,
            base_url=self.base_url,
            reasoning_effort=self.reasoning_effort,
            reasoning_summary=self.reasoning_summary,
            max_answer_tokens=self.max_answer_tokens,
            temperature=self.temperature,
            schema=schema,
            refused=self.limits.refused,
            is_responses_set=self._is_responses_set,
        )

    async def _ask(self, call: OpenAICall, on_text: TextSink | None, on_thought: TextSink | None) -> ChatResponse:
        try:
            return await self._send(call, on_text, on_thought)
        except LLMError:
            raise
        except SettingsError as error:
            raise LLMError(str(error), is_transient=False) from error
        except TimeoutError as error:
            raise LLMError(f"the model sent nothing for {self.timeout_seconds:g} seconds") from error
        except Exception as error:  # a border: what a server sends can be anything
            import openai

            if isinstance(error, (openai.OpenAIError, httpx2.RequestError)):
                raise translate(error, self.model) from error
            logger.warning("model.unreadable", exc_info=True)
            raise LLMError(f"the model's answer could not be read ({type(error).__name__})") from error

    async def _send(self, call: OpenAICall, on_text: TextSink | None, on_thought: TextSink | None) -> ChatResponse:
        """Send a call, and read the answer as bytes: typed events would cost several times the CPU of the rest."""
        answer = call.new_answer(on_text, on_thought)
        await self._clients.current()  # the first loads the client, which is no silence of the server
        stream = AnswerStream(answer, self.timeout_seconds)
        try:
            async with asyncio.timeout(self.timeout_seconds) as limit:
                async with self._clients.post(call.path, call.body()) as response:
                    await stream.read(response, limit)
        except (TimeoutError, httpx2.RequestError, LLMError):  # what comes after the answer is no part of it
            if not answer.is_complete:
                raise
        try:
            return answer.response()
        except LLMError as error:
            raise stream.failure(error) from error.__cause__


def _limits(choice: ApiChoice, base_url: str, model: str) -> ServerLimits:
    is_fixed = choice is not ApiChoice.AUTO
    wire = Wire(choice.value) if is_fixed else Wire.RESPONSES if is_openai(base_url) else Wire.CHAT
    return ServerLimits(wire, is_wire_fixed=is_fixed, base_url=base_url, model=model)
