"""One picture or one sentence that a model refuses silences no chat: the next plain question is answered."""

import json
from dataclasses import replace

import pytest
from standins import openai_providers as providers
from standins.openai_api import Failure, OpenAIApi, Recorded, server_error

from botservice import Attachment, FunctionsBasedAgent, LLMError, OpenAIChatLLM, SteadyWindowMessageSelector
from botservice.conversation.readable_values import image_url
from botservice.core.errors import LLMFailure
from tests.turns.bots import make_service

PNG = Attachment("image/png", "cat.png", data=b"\x89PNG\r\n\x1a\n" + b"0" * 20)
HEIC = Attachment("image/heic", "IMG_1.heic", data=b"ftypheic")


def model(api, name="m", **options):
    return OpenAIChatLLM(name, base_url=api.base_url, api_key="sk-test", api="chat", **options)


def serve(storage, llm, **options):
    service, _ = make_service(storage, llm, message_selector=SteadyWindowMessageSelector(4000), tools=(), **options)
    return service


def refusing(wording, status=400, *, image=True):
    """Return a mind that refuses prompts with a picture, or with the word "poison", and says so in some words."""

    def reply(body):
        text = json.dumps(body["messages"])
        if ("image_url" in text) if image else ("poison" in text):
            return Recorded(
                json.dumps({"error": {"message": wording, "code": status}}).encode(), "application/json", status
            )
        return "fine"

    return reply


IMAGES = [
    ("image input is not supported - hint: if this is unexpected, you may need to provide the mmproj", 500),
    ("No endpoints found that support image input", 404),
    ("Failed to deserialize: messages[1]: unknown variant `image_url`, expected `text`", 400),
    ("Could not process image", 400),
    ("You uploaded an unsupported image. Please make sure your image is valid.", 400),
    ("Something is wrong, and nobody says what.", 400),
    ("Request body is not acceptable", 422),
    ("", 413),
]


@pytest.mark.any_database
@pytest.mark.parametrize(("wording", "status"), IMAGES)
async def test_a_picture_that_is_refused_is_named_and_the_next_question_is_answered(context, storage, wording, status):
    with OpenAIApi.running(refusing(wording, status)) as api:
        service = serve(storage, llm := model(api))
        assert (await service.prompt(context, "hello")).text == "fine"
        answer = await service.prompt(context, "what is this?", attachments=[PNG])
        assert (
            answer.text == "fine\n\n(The model couldn’t see cat.png. It doesn’t accept this kind of picture or file.)"
        )
        since = len(api.requests())
        assert (await service.prompt(context, "and now?")).text == "fine"
        assert len(api.requests()) == since + 1, "it is not sent again"
        assert (await service.prompt(context, "and then?")).text == "fine"
        assert "what is this?" in json.dumps(api.bodies()[-1]), "its words stay"
        assert since <= 6
        await llm.close()


async def test_a_format_that_no_provider_takes_is_named_and_not_sent(context, storage):
    with OpenAIApi.running(lambda _: "fine") as api:
        service = serve(storage, llm := model(api))
        answer = await service.prompt(context, "what is this?", attachments=[HEIC, PNG])
        assert (
            answer.text
            == "fine\n\n(The model couldn’t see IMG_1.heic. It doesn’t accept this kind of picture or file.)"
        )
        sent = json.dumps(api.bodies()[0])
        assert "image/heic;base64" not in sent
        assert "image/png;base64" in sent
        assert "[file: IMG_1.heic, image/heic]" in sent
        await llm.close()


async def test_a_type_that_one_model_refuses_is_left_out_alone(context, storage):
    def reply(body):
        if "image/webp;base64" in json.dumps(body):
            return Failure(400, "Unsupported MIME type: image/webp")
        return "fine"

    with OpenAIApi.running(reply) as api:
        service = serve(storage, llm := model(api))
        webp = Attachment("image/webp", "a.webp", data=b"RIFF")
        answer = await service.prompt(context, "what is this?", attachments=[webp, PNG])
        assert "couldn’t see a.webp" in answer.text
        assert "cat.png" not in answer.text
        assert "image/png;base64" in json.dumps(api.bodies()[-1])
        await llm.close()


BROKEN = Attachment("image/png", "broken.png", data=b"\x89PNG\r\n\x1a\n" + b"1" * 20)


@pytest.mark.parametrize(
    "wording",
    [
        "Could not process image: the image/png data is truncated",
        "Invalid image: failed to decode image/png",
        "Invalid base64 image_url: cannot identify image file (image/png)",
    ],
)
async def test_one_damaged_picture_takes_no_type_of_pictures_away(context, storage, wording):
    damaged = image_url(BROKEN)

    def reply(body):
        return Failure(400, wording) if damaged in json.dumps(body) else "fine"

    with OpenAIApi.running(reply) as api:
        service = serve(storage, llm := model(api))
        answer = await service.prompt(context, "what is this?", attachments=[BROKEN])
        assert "couldn’t see broken.png" in answer.text
        assert (await service.prompt(context, "and this?", attachments=[PNG])).text == "fine"
        assert image_url(PNG) in json.dumps(api.bodies()[-1])
        await llm.close()


async def test_a_type_that_was_taken_before_is_not_given_up_for_one_picture(context, storage):
    damaged = image_url(BROKEN)

    def reply(body):
        return Failure(400, "Unsupported image format: image/png") if damaged in json.dumps(body) else "fine"

    with OpenAIApi.running(reply) as api:
        service = serve(storage, llm := model(api))
        for name, file, says in (("1", PNG, "fine"), ("2", BROKEN, "couldn’t see"), ("3", PNG, "fine")):
            assert says in (await service.prompt(context, name, attachments=[file])).text
        assert image_url(PNG) in json.dumps(api.bodies()[-1])
        await llm.close()


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("wording", "status"), [("Content Exists Risk", 400), ("The prompt was flagged as violent", 403), ("Odd.", 422)]
)
async def test_words_that_are_refused_are_kept_out_of_later_prompts(context, storage, wording, status):
    with OpenAIApi.running(refusing(wording, status, image=False)) as api:
        service = serve(storage, llm := model(api))
        assert (await service.prompt(context, "hello")).text == "fine"
        with pytest.raises(LLMError) as caught:
            await service.prompt(context, "poison")
        assert caught.value.kind in (LLMFailure.CONTENT_FILTER, LLMFailure.BAD_REQUEST)
        since = len(api.requests())
        assert since <= 4
        assert (await service.prompt(context, "and now?")).text == "fine"
        assert len(api.requests()) == since + 1
        assert "hello" in json.dumps(api.bodies()[-1]), "what was said before stays"
        await llm.close()


@pytest.mark.any_database
async def test_what_somebody_else_said_before_is_found_out_told_once_and_kept_out(context, storage):
    with OpenAIApi.running(refusing("Content Exists Risk", image=False)) as api:
        service = serve(storage, llm := model(api))
        await context.chat_history.append_user_message("poison", author="bob")
        told = "(The model’s server rejects an earlier message in this chat. I’m leaving it out for now.)"
        assert (await service.prompt(context, "hello")).text == f"fine\n\n{told}"
        assert len(api.requests()) == 2
        assert (await service.prompt(context, "and now?")).text == "fine"
        assert len(api.requests()) == 3
        await llm.close()
        assert (await context.load_memory()).steps[-1].get_value("is_without_earlier") is None


async def test_a_picture_of_somebody_else_costs_the_chat_nothing_but_the_picture(context, storage):
    with OpenAIApi.running(refusing("Odd.")) as api:
        service = serve(storage, llm := model(api))
        await context.chat_history.append_user_message("look at my cat", author="bob", attachments=[PNG])
        await context.chat_history.append_user_message("nice weather", author="eve")
        await service.prompt(context, "hello")
        assert (await service.prompt(context, "and now?")).text == "fine"
        assert "nice weather" in json.dumps(api.bodies()[-1])
        assert len(api.requests()) == 3
        await llm.close()


class Friendly(FunctionsBasedAgent):
    """An agent whose prompts say one thing more."""

    async def build_prompt(self, context):
        prompt = await super().build_prompt(context)
        prompt.insert(1, {"role": "system", "content": "Be friendly."})
        return prompt


class OfItsOwn(FunctionsBasedAgent):
    """An agent that makes its prompts of what it likes."""

    async def build_prompt(self, context):
        last = context.chat_history.last_user_message
        return [{"role": "user", "content": last.full_text if last else "hello"}]


def serve_agent(storage, agent):
    service, _ = make_service(storage, agent.llm)
    service.agent = agent
    service.options = replace(service.options, agent=agent)
    return service


async def test_an_agent_that_adds_to_its_prompts_is_answered_all_the_same(context, storage):
    with OpenAIApi.running(refusing("Odd.", image=False)) as api:
        agent = Friendly(llm=model(api), message_selector=SteadyWindowMessageSelector(4000), search_k=0)
        service = serve_agent(storage, agent)
        await context.chat_history.append_user_message("poison", author="bob")
        assert "fine\n\n(The model’s server rejects an earlier message" in (await service.prompt(context, "hello")).text
        assert (await service.prompt(context, "and now?")).text == "fine"
        assert len(api.requests()) == 3
        assert all("Be friendly." in json.dumps(body) for body in api.bodies())
        await agent.llm.close()


async def test_a_prompt_that_is_too_long_is_shortened_where_an_agent_adds_to_it(context, storage):
    def reply(body):
        return Failure(400, "prompt is too long") if len(json.dumps(body)) > 3_000 else "fine"

    with OpenAIApi.running(reply) as api:
        agent = Friendly(llm=model(api), message_selector=SteadyWindowMessageSelector(4000), search_k=0)
        service = serve_agent(storage, agent)
        for number in range(10):
            await context.chat_history.append_user_message(f"{number} " + "word " * 100, author="bob")
        assert (await service.prompt(context, "hello")).text == "fine"
        assert "Be friendly." in json.dumps(api.bodies()[-1])
        await agent.llm.close()


async def test_a_prompt_that_does_not_change_is_not_sent_again(context, storage):
    with OpenAIApi.running(refusing("Odd.", image=False)) as api:
        agent = OfItsOwn(llm=model(api), message_selector=SteadyWindowMessageSelector(4000), search_k=0)
        service = serve_agent(storage, agent)
        with pytest.raises(LLMError):
            await service.prompt(context, "poison")
        assert len(api.requests()) == 1
        assert (await service.prompt(context, "and now?")).text == "fine"
        await agent.llm.close()


async def test_a_failure_of_the_server_is_no_reason_to_look_for_a_message(context, storage):
    with OpenAIApi.running(lambda _: server_error(500)) as api:
        service = serve(storage, llm := model(api))
        await context.chat_history.append_user_message("before", author="bob")
        with pytest.raises(LLMError):
            await service.prompt(context, "hello")
        assert all("before" in json.dumps(body) for body in api.bodies())
        await llm.close()


async def test_a_server_that_fails_while_the_refused_part_is_looked_for_blames_nothing(context, storage):
    refuse, failures = refusing("Odd."), [server_error(503)]

    def reply(body):
        said = refuse(body)
        return failures.pop() if said == "fine" and "what is this?" in json.dumps(body) and failures else said

    with OpenAIApi.running(reply) as api:
        service = serve(storage, llm := model(api))
        answer = await service.prompt(context, "what is this?", attachments=[PNG])
        assert "couldn’t see cat.png" in answer.text
        assert (await service.prompt(context, "and now?")).text == "fine"
        assert "what is this?" in json.dumps(api.bodies()[-1]), "its words stay"
        await llm.close()


async def test_a_refusal_is_forgotten_after_a_day(context, storage):
    with OpenAIApi.running(providers_text_only) as api:
        service = serve(storage, llm := model(api))
        clock = [0.0]
        llm.limits._clock = lambda: clock[0]
        await service.prompt(context, "what is this?", attachments=[PNG])
        assert len(api.requests()) == 2
        await service.prompt(context, "and now?")
        assert len(api.requests()) == 3
        clock[0] += 90_000.0
        await service.prompt(context, "and now?")
        assert len(api.requests()) == 5, "it is asked again, as another model may be there"
        await llm.close()


def providers_text_only(body):
    return providers.text_only(body) or "fine"
