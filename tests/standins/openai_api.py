# ruff: noqa: T201 - it prints for whoever tries it by hand
"""OpenAI's API on loopback, as strict as the real one: `with OpenAIApi.running(reply) as api: …`.

By hand: `python tests/standins/openai_api.py --port 8090`, then OPENAI_BASE_URL=http://127.0.0.1:8090/v1.
"""

import asyncio
import contextlib
import inspect
import json
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])

from standins.openai_catalogue import STANDING, describe, model_not_found
from standins.openai_checks import check_chat, check_known, read_json
from standins.openai_journal import Counting, Ended, Ending, Requested, Running
from standins.openai_models import check_retired
from standins.openai_other import check_transcription, embeddings, read_form
from standins.openai_refusals import RefusedError, refuse
from standins.openai_replies import (
    Completion,
    Failure,
    Recorded,
    Reply,
    ToolUse,
    as_reply,
    context_length_exceeded,
    not_json,
    prompt_tokens,
    quota_exceeded,
    rate_limited,
    server_error,
)
from standins.openai_responses import Response, as_chat
from standins.openai_responses_checks import check_responses
from standins.openai_scripts import Replying, demo, hashed_words, script
from standins.openai_seals import Seals
from standins.serving import DEFAULT_TIMEOUT_SECONDS, ClientGoneError, Entry, Exchange, Gate

__all__ = [
    "Ended",
    "Ending",
    "Failure",
    "Gate",
    "OpenAIApi",
    "Recorded",
    "Reply",
    "Requested",
    "ToolUse",
    "context_length_exceeded",
    "demo",
    "not_json",
    "quota_exceeded",
    "rate_limited",
    "script",
    "server_error",
]

CHAT = "/v1/chat/completions"
RESPONSES = "/v1/responses"


class OpenAIApi(Counting):
    """A model server. `reply` gets each chat body, in the server's thread; it must not block, but may be async.

    By Responses it gets the body with `messages` and `tools` as chat.completions has them.

    Args:
        speaks: Which of the two paths there are.
        refuses: Fields that an older server does not know.
    """

    def __init__(
        self,
        reply: Replying = demo,
        *,
        speaks: Collection[str] = (CHAT, RESPONSES),
        refuses: Collection[str] = (),
        api_key: str | None = None,
        models: Sequence[str] = (),
        shutdowns: Mapping[str, str] | None = None,
        no_list: Failure | None = None,
        embed: Callable[[str], Sequence[float]] = hashed_words,
        transcribe: Callable[[bytes, dict[str, Any]], str | Failure] = lambda data, fields: (
            f"{len(data)} bytes of speech"
        ),
        context_window: int | None = None,
    ):
        super().__init__()
        self.reply = reply
        self.speaks = speaks
        self.refuses = refuses
        self.seals = Seals()
        self.api_key = api_key
        self.models = tuple(models)
        self.shutdowns = shutdowns
        self.no_list = no_list
        self.embed = embed
        self.transcribe = transcribe
        self.context_window = context_window

    @classmethod
    @contextlib.contextmanager
    def running(cls, reply: Replying = demo, *, port: int = 0, **options: Any) -> Iterator["OpenAIApi"]:
        """Run a fresh server while the block runs."""
        api = cls(reply, **options)
        with api.serving(port):
            yield api

    @property
    def base_url(self) -> str:
        """What OPENAI_BASE_URL holds."""
        return f"{self.url}/v1"

    # What tests look at and wait for

    def requests(self, path: str = CHAT, *, since: int = 0) -> list[Requested]:
        """Return the requests to a path, right or wrong, after a sequence number."""
        return [entry for entry in self.journal.entries(Requested, since=since) if entry.path == path]

    def bodies(self, path: str = CHAT) -> list[dict[str, Any]]:
        return [entry.body for entry in self.requests(path)]

    def endings(self, ending: Ending | None = None, *, path: str = CHAT) -> list[Ended]:
        """Return how requests ended; refused ones show a fault of ours."""
        return [e for e in self.journal.entries(Ended) if e.path == path and ending in (None, e.ending)]

    def wait_for_call(
        self,
        predicate: Callable[[dict[str, Any]], bool] = lambda _: True,
        *,
        path: str = CHAT,
        since: int = 0,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> Requested:
        """Return the first request whose body fits, waiting for it if need be."""
        return self.journal.wait_for(
            Requested, lambda entry: entry.path == path and predicate(entry.body), since=since, timeout=timeout
        )

    def wait_for_end(self, request_seq: int, *, timeout: float = DEFAULT_TIMEOUT_SECONDS) -> Ended:
        """Return how a request ended, waiting for it if need be."""
        return self.journal.wait_for(
            Ended, lambda entry: entry.request_seq == request_seq, since=request_seq, timeout=timeout
        )

    async def call(self, predicate: Callable[[dict[str, Any]], bool] = lambda _: True, **how: Any) -> Requested:
        """Return what `wait_for_call` does, without holding up the test's own event loop."""
        return await asyncio.to_thread(self.wait_for_call, predicate, **how)

    async def end(self, request_seq: int, **how: Any) -> Ended:
        """Return what `wait_for_end` does, without holding up the test's own event loop."""
        return await asyncio.to_thread(self.wait_for_end, request_seq, **how)

    # The server

    async def handle(self, exchange: Exchange) -> None:
        raw = await exchange.body()
        running = Running(self, exchange)
        try:
            self._check_key(exchange)
            await self._route(exchange, raw, running)
        except RefusedError as error:
            running.begin({})
            running.end(Ending.REFUSED, error.failure.status, error.failure.message)
            await exchange.answer_json(error.failure.status, error.failure.as_wire())
        except ClientGoneError:
            running.end(Ending.ABORTED, 0)
        finally:
            running.end(Ending.ABORTED, 0, "it broke")

    def _check_key(self, exchange: Exchange) -> None:
        if self.api_key is None:
            return
        given = exchange.headers.get("authorization", "")
        key = given.removeprefix("Bearer ").strip()
        if not given.startswith("Bearer ") or not key:
            raise refuse(
                "You didn't provide an API key. You need to provide your API key in an Authorization header using "
                "Bearer auth (i.e. Authorization: Bearer YOUR_KEY).",
                status=401,
            )
        if key != self.api_key:
            shown = f"{key[:3]}***{key[-4:]}" if len(key) > 10 else key
            raise refuse(
                f"Incorrect API key provided: {shown}. You can find your API key at "
                "https://platform.openai.com/account/api-keys.",
                code="invalid_api_key",
                status=401,
            )

    async def _route(self, exchange: Exchange, raw: bytes, running: Running) -> None:
        match exchange.method, exchange.path:
            case "POST", path if path in (CHAT, RESPONSES) and path in self.speaks:
                running.begin(body := read_json(raw))
                check_known(body, self.refuses)
                check_retired(str(body.get("model")))
                await (self._chat if path == CHAT else self._responses)(exchange, body, running)
            case "POST", "/v1/embeddings":
                running.begin(body := read_json(raw))
                await self._embeddings(exchange, body, running)
            case "POST", "/v1/audio/transcriptions":
                await self._transcriptions(exchange, raw, running)
            case "GET", path if path == "/v1/models" or path.startswith("/v1/models/"):
                await self._models(exchange, path.removeprefix("/v1/models").strip("/"), running)
            case method, path:
                raise refuse(f"Invalid URL ({method} {path})", status=404)

    async def _models(self, exchange: Exchange, name: str, running: Running) -> None:
        running.begin({})
        if self.no_list is not None:
            raise RefusedError(self.no_list)
        listed = describe(self.models or (*STANDING, *(self.shutdowns or ())), self.shutdowns)
        if name:
            self._check_model(name)
            listed = [model for model in listed if model["id"] == name] or listed[:1]
        running.end(Ending.COMPLETED, 200)
        await exchange.answer_json(200, listed[0] if name else {"object": "list", "data": listed})

    def _check_model(self, model: str) -> None:
        if self.models and model not in self.models:
            raise RefusedError(model_not_found(model))

    async def _chat(self, exchange: Exchange, body: dict[str, Any], running: Running) -> None:
        check_chat(body)
        reply, tokens = await self._replied(exchange, body)
        is_counted = bool((body.get("stream_options") or {}).get("include_usage")) and reply.with_usage
        await self._answer(exchange, body, Completion(reply, body["model"], tokens, is_counted), running)
        if running.is_streamed:
            await exchange.write(b"data: [DONE]\n\n", more=False)

    async def _responses(self, exchange: Exchange, body: dict[str, Any], running: Running) -> None:
        check_responses(body)
        key = exchange.headers.get("authorization", "")
        if not isinstance(body["input"], str):
            self.seals.check(body["input"], model=body["model"], key=key)
        reply, tokens = await self._replied(exchange, as_chat({"tools": []} | body))
        await self._answer(exchange, body, Response(reply, body, key, self.seals, tokens), running)
        if running.is_streamed:
            await exchange.write(b"", more=False)

    async def _replied(self, exchange: Exchange, body: dict[str, Any]) -> tuple[Reply, int]:
        self._check_model(body["model"])
        tokens = prompt_tokens(body)
        if self.context_window is not None and tokens > self.context_window:
            raise RefusedError(context_length_exceeded(self.context_window, tokens))
        given = self.reply(body)
        if inspect.isawaitable(given):
            given = await exchange.unless_gone(given)
        return as_reply(given), tokens

    async def _answer(
        self, exchange: Exchange, body: dict[str, Any], answer: Completion | Response, running: Running
    ) -> None:
        reply = answer.reply
        if not await self._first_byte(exchange, reply, running):
            return
        if reply.recorded is not None:
            await _replay(exchange, reply.recorded, running)
            return
        if reply.failure is not None:
            running.end(Ending.FAILED, reply.failure.status, reply.failure.message)
            await _fail(exchange, reply.failure)
        elif body.get("stream") and not reply.ignores_stream:
            await self._stream(exchange, answer, running)
        else:
            running.end(Ending.ABORTED if exchange.is_gone else Ending.COMPLETED, 200)
            await exchange.answer_json(200, answer.whole())

    async def _first_byte(self, exchange: Exchange, reply: Reply, running: Running) -> bool:
        """Do what happens before the first byte, and return whether there will be one."""
        if reply.delay:
            await exchange.unless_gone(asyncio.sleep(reply.delay))
        if reply.wait is not None:
            await exchange.unless_gone(reply.wait.passed())
        if reply.hang:
            await exchange.gone()
            raise ClientGoneError
        if reply.drop_after == 0:
            running.end(Ending.DROPPED, 0)
            await exchange.drop()
            return False
        return True

    async def _stream(self, exchange: Exchange, answer: Completion | Response, running: Running) -> None:
        reply = answer.reply
        await exchange.start(
            200, content_type="text/event-stream; charset=utf-8", headers={"cache-control": "no-cache"}
        )
        for number, group in enumerate(answer.groups()):
            if number and reply.chunk_delay:
                await exchange.unless_gone(asyncio.sleep(reply.chunk_delay))
            if reply.chunk_wait is not None and number == reply.wait_at:
                await exchange.unless_gone(reply.chunk_wait.passed())
            if not await self._goes_on(exchange, answer, running, number):
                return
            await _events(exchange, group)
            running.chunks += 1
        if not await self._goes_on(exchange, answer, running, running.chunks):
            return
        await _events(exchange, answer.ending())
        running.end(Ending.ABORTED if exchange.is_gone else Ending.COMPLETED, 200)
        running.is_streamed = True

    async def _goes_on(self, exchange: Exchange, answer: Completion | Response, running: Running, number: int) -> bool:
        """Do what happens before delta `number`, and return whether the stream goes on."""
        reply = answer.reply
        if exchange.is_gone:
            raise ClientGoneError
        if number == reply.hang_after:
            await exchange.gone()
            raise ClientGoneError
        if number == reply.drop_after:
            running.end(Ending.DROPPED, 200)
            await exchange.drop()
            return False
        if number == reply.fail_after:
            running.end(Ending.FAILED, 200)
            await _events(exchange, answer.failing())
            await exchange.write(b"", more=False)
            return False
        return True

    async def _embeddings(self, exchange: Exchange, body: dict[str, Any], running: Running) -> None:
        answer = embeddings(body, self.embed)
        self._check_model(body["model"])
        running.end(Ending.COMPLETED, 200)
        await exchange.answer_json(200, answer)

    async def _transcriptions(self, exchange: Exchange, raw: bytes, running: Running) -> None:
        fields, file = read_form(raw, exchange.headers.get("content-type", ""))
        named = {"filename": file.filename, "mime_type": file.mime_type, "size": len(file.data)} if file else {}
        running.begin(fields | named)
        audio = check_transcription(fields, file)
        self._check_model(fields["model"])
        said = self.transcribe(audio.data, fields | named)
        if isinstance(said, Failure):
            running.end(Ending.FAILED, said.status, said.message)
            await _fail(exchange, said)
            return
        running.end(Ending.COMPLETED, 200)
        if fields.get("response_format", "json") in {"text", "srt", "vtt"}:
            await exchange.answer(200, f"{said}\n".encode(), content_type="text/plain; charset=utf-8")
        else:
            await exchange.answer_json(200, {"text": said, "usage": {"type": "duration", "seconds": 3}})


async def _events(exchange: Exchange, values: Sequence[dict[str, Any]]) -> None:
    for value in values:
        named = b"event: " + value["type"].encode() + b"\n" if "type" in value else b""
        await exchange.write(named + b"data: " + json.dumps(value).encode() + b"\n\n")


async def _replay(exchange: Exchange, recorded: Recorded, running: Running) -> None:
    await exchange.start(recorded.status, content_type=recorded.content_type)
    await exchange.write(recorded.body)
    if recorded.then == "hang":
        await exchange.gone()
        raise ClientGoneError
    running.end(Ending.COMPLETED if recorded.then == "close" else Ending.DROPPED, recorded.status)
    if recorded.then == "close":
        await exchange.write(b"", more=False)
    else:
        await exchange.drop()


async def _fail(exchange: Exchange, failure: Failure) -> None:
    if failure.raw is not None:
        await exchange.answer(failure.status, failure.raw, content_type="text/html", headers=failure.headers)
    else:
        await exchange.answer_json(failure.status, failure.as_wire(), failure.headers)


def _last(body: dict[str, Any]) -> Any:
    return (body.get("messages") or body.get("input") or ["…"])[-1]


def main() -> None:
    import argparse

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds between chunks")
    options = parser.parse_args()

    def reply(body: dict[str, Any]) -> Reply:
        given = as_reply(demo(body))
        return Reply(text=given.text, tool_calls=given.tool_calls, chunk_delay=options.delay)

    with OpenAIApi.running(reply, port=options.port) as api:
        print(f"OPENAI_BASE_URL={api.base_url}", flush=True)
        since = 0
        while True:
            entry = api.journal.wait_for(Entry, since=since, timeout=3e6)
            since = entry.seq
            if isinstance(entry, Requested):
                print(f"→ {entry.path} {json.dumps(_last(entry.body), ensure_ascii=False)[:200]}")
            elif isinstance(entry, Ended):
                print(f"← {entry.ending} {entry.status} {entry.detail}", flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
