"""What one process learns of a model's refusals, the others know: from the database, for a day or until forgotten."""

import json
from datetime import timedelta

import pytest
from sqlalchemy import select
from standins import openai_providers as providers
from standins.openai_api import CHAT, RESPONSES, OpenAIApi, Recorded

from botservice import AgentContext, Attachment, LLMError, OpenAIChatLLM, SteadyWindowMessageSelector
from botservice.conversation.refusal_queries import forget_refusals, list_refusals, read_kept_out
from botservice.llm.openai.errors import judge, read_error
from botservice.privacy.forgetting import forget_chat
from botservice.storage.tables.services import model_refusals, refused_messages
from tests.turns.bots import make_service

PNG = Attachment("image/png", "cat.png", data=b"\x89PNG\r\n\x1a\n" + b"0" * 20)
DIARY = "my secret diary about Rex"


class Process:
    """What another process has of its own: a client of the model, and an agent."""

    def __init__(self, storage, api, *, seconds=lambda: 0.0, agent_class=None):
        self.llm = OpenAIChatLLM("m", base_url=api.base_url.replace("//", "//user:hidden@"), api_key="k", api="chat")
        options = {"message_selector": SteadyWindowMessageSelector(4000), "tools": ()}
        self.service, _ = make_service(storage, self.llm, **options)
        self.service.agent._refusals._clock = seconds


async def refusals(storage, *, later=timedelta()):
    return await storage.read(lambda connection: list_refusals(connection, storage.now() + later))


def text_only(body):
    return providers.text_only(body) or "fine"


def refusing_words(body):
    if "poison" in json.dumps(body["messages"]):
        return Recorded(b'{"error": {"message": "Content Exists Risk"}}', "application/json", 400)
    return "fine"


@pytest.mark.any_database
async def test_what_one_process_learned_another_one_does_not_send(context, storage):
    with OpenAIApi.running(text_only) as api:
        first, second = Process(storage, api), Process(storage, api)
        await first.service.prompt(context, "what is this?", attachments=[PNG])
        since = len(api.requests())
        other = await AgentContext.get_or_create(storage, {"chat": "other"})
        answer = await second.service.prompt(other, "and this?", attachments=[PNG])
        assert "couldn’t see cat.png" in answer.text
        assert len(api.requests()) == since + 1, "one request, without the picture"
        await first.llm.close()
        await second.llm.close()
    (known,) = await refusals(storage)
    assert (known.model, known.what) == ("m", "image")
    assert known.server == api.base_url, "no name, no password"
    assert known.expires_at - known.learned_at == timedelta(days=1)
    assert await refusals(storage, later=timedelta(days=1, seconds=1)) == []


@pytest.mark.any_database
async def test_the_api_that_one_process_was_pointed_to_is_the_one_that_all_ask(context, storage):
    with OpenAIApi.running() as api:
        llms = [OpenAIChatLLM("gpt-6.1-terra", base_url=api.base_url, api_key="k") for _ in range(3)]
        for llm in llms[:2]:
            service, _ = make_service(storage, llm)
            await service.prompt(context, "hello")
        assert [len(api.requests(path)) for path in (CHAT, RESPONSES)] == [1, 2]
        assert [each.what for each in await refusals(storage)] == ["/chat/completions"]
        assert await storage.write(forget_refusals) == 1
        service, _ = make_service(storage, llms[2])
        await service.prompt(context, "hello")
        assert [len(api.requests(path)) for path in (CHAT, RESPONSES)] == [2, 3], "it is tried again"
        for llm in llms:
            await llm.close()


@pytest.mark.any_database
async def test_what_is_forgotten_by_one_process_is_tried_again_by_all_within_a_minute(context, storage):
    seconds = [0.0]
    with OpenAIApi.running(text_only) as api:
        process = Process(storage, api, seconds=lambda: seconds[0])
        await process.service.prompt(context, "what is this?", attachments=[PNG])
        assert await storage.write(forget_refusals) == 1
        await process.service.prompt(context, "and now?")
        assert len(api.requests()) == 3, "what was read counts for a minute"
        seconds[0] += 61.0
        await process.service.prompt(context, "and now?")
        assert len(api.requests()) == 5, "the picture is tried again, and refused again"
        assert [each.what for each in await refusals(storage)] == ["image"]
        await process.llm.close()


async def test_a_database_that_does_not_answer_keeps_no_model_from_answering(context, storage, monkeypatch):
    from botservice.agent import shared_refusals as records
    from botservice.core.errors import StorageUnavailable

    def fail(*_, **__):
        raise StorageUnavailable("down")

    with OpenAIApi.running(text_only) as api:
        process = Process(storage, api)
        with monkeypatch.context() as patch:
            patch.setattr(records, "list_refusals", fail)
            patch.setattr(records, "write_refusals", fail)
            answer = await process.service.prompt(context, "what is this?", attachments=[PNG])
            assert answer.text.startswith("fine")
        assert await refusals(storage) == []
        await process.service.prompt(context, "and now?")
        assert [each.what for each in await refusals(storage)] == ["image"], "it is stored as soon as that is possible"
        await process.llm.close()


@pytest.mark.any_database
async def test_words_that_one_process_found_refused_are_kept_out_by_another_and_told_once(context, storage):
    with OpenAIApi.running(refusing_words) as api:
        first, second = Process(storage, api), Process(storage, api)
        await context.chat_history.append_user_message(f"poison: {DIARY}", author="bob")
        assert "rejects an earlier message in this chat" in (await first.service.prompt(context, "hello")).text
        since = len(api.requests())
        again = await AgentContext.get_or_create(storage, context.context_keys)
        assert (await second.service.prompt(again, "and now?")).text == "fine"
        assert len(api.requests()) == since + 1
        await first.llm.close()
        await second.llm.close()
    rows = await storage.read(lambda connection: connection.execute(select(refused_messages)).all())
    assert [(row.model, row.is_told) for row in rows] == [("m", True)]
    assert "diary" not in str(rows)


@pytest.mark.any_database
async def test_forgetting_a_chat_forgets_what_was_kept_out_of_it(context, storage):
    with OpenAIApi.running(refusing_words) as api:
        process = Process(storage, api)
        with pytest.raises(LLMError):
            await process.service.prompt(context, "poison")
        await process.llm.close()
    kept = await storage.read(lambda connection: read_kept_out(connection, context.id, "m", storage.now()))
    assert kept.messages
    await forget_chat(storage, context.id)
    assert await storage.read(lambda connection: connection.execute(select(refused_messages)).all()) == []


@pytest.mark.parametrize(
    ("body", "wording"),
    [
        (f"image input is not supported: {DIARY}", "400 image input is not support"),
        (f"Unsupported parameter ({DIARY}): 'stream_options'", "400 Unsupported … stream_options"),
        (f"the model does not support, says {DIARY}, image", "400 not support … image"),
    ],
)
def test_the_wording_that_is_kept_has_no_words_of_people(body, wording):
    outcome = judge(read_error(json.dumps({"error": {"message": body}}), 400))
    assert outcome.refused is not None
    assert outcome.wording == wording


async def test_no_row_holds_the_words_or_the_picture_of_a_question(context, storage):
    def reply(body):
        said = json.dumps(body["messages"])
        if "image_url" in said:
            return Recorded(json.dumps({"error": f"image input is not supported: {said}"}).encode(), "text/plain", 400)
        return "fine"

    with OpenAIApi.running(reply) as api:
        process = Process(storage, api)
        await process.service.prompt(context, DIARY, attachments=[PNG])
        await process.llm.close()
    rows = await storage.read(lambda connection: connection.execute(select(model_refusals)).all())
    assert rows
    assert all(word not in str(rows) for word in (*DIARY.split()[1:], "cat.png", "base64"))
