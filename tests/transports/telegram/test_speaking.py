"""Who asks by voice hears the answer as well, where a model speaks; what is kept is the text."""

import contextlib
import json
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest
from standins.bot_api import BotApi, Refuse
from standins.web_server import web_server
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from botservice import AgentContext, Storage
from botservice.llm.openai.speech import OpenAISpeaker
from botservice.people.usage import UsageBy
from botservice.people.usage_queries import list_usage
from botservice.storage.tables.conversations import deliveries

OGG = b"OggS" + bytes(40)
FORBIDDEN = Refuse(400, "Bad Request: VOICE_MESSAGES_FORBIDDEN")


@dataclass
class Mouth:
    """A server that speaks, and what it was asked."""

    status: int = 200
    asked: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    async def answer(self, request: Request) -> Response:
        self.asked.append(json.loads(await request.body()))
        return Response(OGG, status_code=self.status, media_type="audio/ogg")


@pytest.fixture
async def mouth() -> AsyncIterator[Mouth]:
    mouth = Mouth()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        mouth.url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
        async with web_server([Route("/v1/audio/speech", mouth.answer, methods=["POST"])], listener):
            yield mouth


@contextlib.asynccontextmanager
async def speaking(api: BotApi, bot_on: Any, mouth: Mouth, script: Any) -> AsyncIterator[Any]:
    speaker = OpenAISpeaker("tts", base_url=mouth.url, api_key="k")
    async with bot_on(api, script, speaker=speaker) as bot:
        yield bot
    await speaker.close()


async def said(storage: Storage) -> list[tuple[str, int]]:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "42"})
    return [(each.text, len(each.attachments)) for each in await context.chat_history.messages()][1:]


async def test_a_spoken_question_is_answered_by_voice_with_the_words_below(
    api: BotApi, bot_on: Any, mouth: Mouth, sqlite_storage: Storage
) -> None:
    async with speaking(api, bot_on, mouth, lambda _: "It is **noon**."):
        api.person_sends_voice(b"OggS", chat_id=42)
        shown = await api.message(42, "It is noon.")
    assert (shown.kind, api.file(shown.file_id).data) == ("voice", OGG)
    assert mouth.asked == [{"model": "tts", "voice": "alloy", "input": "It is **noon**.", "response_format": "opus"}]
    assert await said(sqlite_storage) == [("It is **noon**.", 0)]
    used = await sqlite_storage.read(lambda c: list_usage(c, UsageBy.MODEL, datetime(2020, 1, 1, tzinfo=UTC)))
    (line,) = [each for each in used if each.subject == "tts"]
    assert (line.calls, line.input_tokens) == (1, len("It is **noon**."))


@pytest.mark.parametrize("status", [400, 404, 500])
async def test_a_failure_of_speech_costs_no_answer(api: BotApi, bot_on: Any, mouth: Mouth, status: int) -> None:
    mouth.status = status
    async with speaking(api, bot_on, mouth, lambda _: "It is noon."):
        api.person_sends_voice(b"OggS", chat_id=42)
        shown = await api.message(42, "It is noon.")
    assert shown.kind == "text"


@pytest.mark.parametrize(
    "refusal",
    [
        FORBIDDEN,
        Refuse(403, "Forbidden: VOICE_MESSAGES_FORBIDDEN"),
        Refuse(400, "Bad Request: not enough rights to send voice notes to the chat"),
        Refuse(400, "Bad Request: CHAT_SEND_VOICES_FORBIDDEN"),
    ],
    ids=str,
)
async def test_who_takes_no_voice_messages_gets_the_words_and_no_more_tries(
    api: BotApi, bot_on: Any, mouth: Mouth, sqlite_storage: Storage, refusal: Refuse
) -> None:
    api.order(refusal, "sendVoice", times=None)
    async with speaking(api, bot_on, mouth, lambda _: "It is noon."):
        for count in (1, 2):
            api.person_sends_voice(b"OggS", chat_id=42)
            assert [each.kind for each in await api.messages(42, count, "It is noon.")] == ["text"] * count
    assert len(api.calls("sendVoice")) == 1
    rows = await sqlite_storage.read(lambda c: c.execute(deliveries.select()).all())
    assert [row.status for row in rows] == ["delivered", "delivered"]


@pytest.mark.parametrize("text", ["word " * 300, ""])
async def test_what_is_long_is_not_spoken(api: BotApi, bot_on: Any, mouth: Mouth, text: str) -> None:
    async with speaking(api, bot_on, mouth, lambda _: text or "short"):
        if text:
            api.person_sends_voice(b"OggS", chat_id=42)
        else:
            api.person_says("written", chat_id=42)
        await api.message(42)
    assert mouth.asked == []
