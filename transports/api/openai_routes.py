"""The bot as a model: `/v1/chat/completions`, `/v1/responses` and `/v1/models`, as clients of OpenAI know them."""

import asyncio
import logging
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import BaseRoute, Route

from botservice.app import Application
from botservice.config.settings import reveal
from botservice.conversation.context import AgentContext
from botservice.core.errors import BotServiceError
from botservice.core.messages import Author, Message, TokenUsage, is_blank
from botservice.privacy.forgetting import forget_chat
from transports.api.openai_answers import AnswerFormat, ChatFormat, ResponsesFormat
from transports.api.openai_requests import STATELESS, Asked, read_chat, read_responses
from transports.api.requests import as_error, read_fields, with_token
from transports.common.background_tasks import BackgroundTasks
from transports.common.growing_answer import AnswerState

logger = logging.getLogger(__name__)

_MAX_BYTES: Final = 20 * 1024 * 1024
_ALIVE_SECONDS: Final = 15.0  # proxies close what is silent for a minute
_HEADERS: Final = {"cache-control": "no-store", "x-accel-buffering": "no"}
_NAME: Final = "botservice"


@dataclass(frozen=True, slots=True)
class _TurnAnswer:
    text: str
    usage: TokenUsage


class _StreamedPieces(AnswerState):
    """What a stream shows of a turn: what the model says, each step a paragraph, and at the end all of the answer."""

    def __init__(self) -> None:
        super().__init__()
        self.news: asyncio.Queue[str | None] = asyncio.Queue()
        self.shown = ""

    def on_activity(self, activity: str) -> None:
        """Show nothing of it: what the bot does is its own affair, and no thought ends a paragraph."""

    def add_text(self, piece: str) -> None:
        """Take and show the next piece of the answer."""
        super().add_text(piece)
        self._show(piece)

    def begin_text(self) -> None:
        """Begin the answer again, below what is shown: that is no part of it."""
        if self.text:
            self._show("\n\n")
        super().begin_text()

    def finish(self, text: str) -> None:
        """Take the whole answer, and show what of it is not shown yet."""
        if not text.startswith(self.text):
            self.begin_text()
        self._show(text.removeprefix(self.text))

    def _show(self, piece: str) -> None:
        if piece:
            self.shown += piece
            self.news.put_nowait(piece)


class ModelEndpoint:
    """Answers clients of OpenAI's APIs: each request is a turn of the bot, in a conversation that it keeps."""

    def __init__(self, application: Application) -> None:
        self._service = application.service
        self._storage = application.storage
        self._most = application.settings.max_turns
        self._name = application.service.name or _NAME
        self._token = reveal(application.settings.api_token)
        self._turns = BackgroundTasks()
        self._running = 0

    def routes(self) -> list[BaseRoute]:
        """Return the routes."""

        async def chat(request: Request) -> Response:
            return await self._answer(request, read_chat, ChatFormat)

        async def responses(request: Request) -> Response:
            return await self._answer(request, read_responses, ResponsesFormat)

        return [
            Route("/v1/chat/completions", with_token(self._token, chat), methods=["POST"]),
            Route("/v1/responses", with_token(self._token, responses), methods=["POST"]),
            Route("/v1/models", with_token(self._token, self._models)),
            Route("/v1/models/{name}", with_token(self._token, self._model)),
        ]

    async def _models(self, _: Request) -> Response:
        models = [self._describe(name) for name in (self._name, f"{self._name}{STATELESS}")]
        return JSONResponse({"object": "list", "data": models})

    async def _model(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in (self._name, f"{self._name}{STATELESS}"):
            raise HTTPException(404, f"there is no model {name!r:.80}; there is {self._name}")
        return JSONResponse(self._describe(name))

    def _describe(self, name: str) -> dict[str, Any]:
        return {"id": name, "object": "model", "created": 0, "owned_by": _NAME}

    async def _answer(
        self,
        request: Request,
        read: Callable[[Mapping[str, Any], Mapping[str, str]], Asked],
        make_format: Callable[..., AnswerFormat],
    ) -> Response:
        asked = read(await read_fields(request, _MAX_BYTES), request.headers)
        if is_blank(asked.text) and not asked.files:
            raise HTTPException(400, "the last message of the user is empty")
        if self._running >= self._most:
            raise HTTPException(503, "too many answers are being made: send it again later", {"retry-after": "5"})
        pieces = _StreamedPieces()
        # A client that leaves takes nothing back: the turn ends, and its answer is in the history.
        self._running += 1  # here, because the task begins later, and others of a burst are counted before that
        turn = self._turns.start(self._take_turn(asked, pieces), "botservice-api-turn")
        turn.add_done_callback(self._end_turn)
        form = make_format(asked.model or self._name, int(time.time()), has_usage=asked.has_usage)
        if asked.is_streamed:
            return StreamingResponse(self._stream(form, turn, pieces), media_type="text/event-stream", headers=_HEADERS)
        answer = await asyncio.shield(turn)
        return JSONResponse(form.whole(answer.text, answer.usage))

    async def _stream(
        self, form: AnswerFormat, turn: "asyncio.Task[_TurnAnswer]", pieces: _StreamedPieces
    ) -> AsyncIterator[str]:
        for event in form.begin():
            yield event
        while True:
            try:
                piece = await asyncio.wait_for(pieces.news.get(), _ALIVE_SECONDS)
            except TimeoutError:
                yield ": alive\n\n"
                continue
            if piece is None:
                break
            for event in form.piece(piece):
                yield event
        try:
            answer = await turn
        except HTTPException as error:
            ending = form.fail(error.detail)
        else:
            ending = form.end(pieces.shown, answer.usage)
        for event in ending:
            yield event

    async def _take_turn(self, asked: Asked, pieces: _StreamedPieces) -> _TurnAnswer:
        """Have the bot answer.

        Raises:
            HTTPException: it cannot.
        """
        context: AgentContext | None = None
        try:
            keys = asked.keys if asked.is_kept else {"transport": "api", "once": uuid.uuid4().hex}
            context = await AgentContext.get_or_create(self._storage, keys)
            context.only_tools = await self._find_tools(asked, context)
            author = None if asked.user is None else Author("api", asked.user)
            said = await self._service.prompt(context, asked.text, author=author, attachments=asked.files, live=pieces)
            answer = _TurnAnswer(_text_of(said), _usage_of(context))
            pieces.finish(answer.text)
        except BotServiceError as error:
            raise as_error(error) from error
        except Exception as error:
            logger.exception("api.turn_failed")
            raise HTTPException(500, f"the turn failed with {type(error).__name__}") from error
        else:
            return answer
        finally:
            pieces.news.put_nowait(None)
            if context is not None and not asked.is_kept:
                await forget_chat(self._storage, context.id)

    def _end_turn(self, turn: "asyncio.Task[_TurnAnswer]") -> None:
        self._running -= 1
        if not turn.cancelled() and (error := turn.exception()) is not None:  # nobody may be left to hear of it
            logger.info("api.turn_refused", extra={"reason": str(error)})

    async def _find_tools(self, asked: Asked, context: AgentContext) -> frozenset[str]:
        """Return the tools that may run: those that ask for approval cannot, because nobody could be asked here."""
        if not asked.has_tools:
            return frozenset()
        tools = await self._service.agent.tools_for(context)
        return frozenset(name for name, tool in tools.items() if tool.needs_approval is False)


def _text_of(message: Message) -> str:
    """Return an answer as text; files of it are named."""
    names = [f"[{each.name or each.mime_type}]" for each in message.attachments]
    return "\n".join(part for part in (message.text, *names) if part)


def _usage_of(context: AgentContext) -> TokenUsage:
    """Return what a turn took, of all of its steps."""
    usages = [step.get_value("token_usage") for step in context.memory.steps]
    known = [each for each in usages if isinstance(each, TokenUsage)]
    return TokenUsage(
        sum(each.input_tokens for each in known),
        sum(each.output_tokens for each in known),
        sum(each.cached_tokens or 0 for each in known),
        sum(each.reasoning_tokens or 0 for each in known),
    )
