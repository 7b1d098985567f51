"""Answers in the form of a pydantic model: asked for, validated, tried again, and stored."""

from datetime import date
from enum import StrEnum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, RootModel
from standins.openai_api import CHAT, RESPONSES, Failure, OpenAIApi
from turns.bots import add, call, make_service

from botservice import AgentContext, AgentService, FunctionsBasedAgent, InvalidArgument, InvalidOutput, OpenAIChatLLM
from botservice.llm.structured_output import OutputForm

pytestmark = pytest.mark.any_database


class Unit(StrEnum):
    PIECES = "pieces"
    KILOS = "kilos"


class Item(BaseModel):
    name: str
    amount: int = Field(ge=1)
    unit: Unit = Unit.PIECES


class Order(BaseModel):
    """An order of a customer."""

    items: list[Item]
    due: date | None = None


class Loose(BaseModel):
    anything: dict[str, Any]


TEA = '{"items": [{"name": "tea", "amount": 2, "unit": "pieces"}], "due": "2026-12-01"}'


async def test_the_answer_is_an_object_and_its_text_is_in_the_history(context, storage):
    service, llm = make_service(storage, [TEA])
    answer = await service.prompt(context, "two teas for the first", output=Order)
    assert answer.output == Order(items=[Item(name="tea", amount=2)], due=date(2026, 12, 1))
    assert [each.text for each in await context.chat_history.messages()] == ["two teas for the first", TEA]
    assert "valid by this JSON schema" in llm.prompts[0][-1]["content"]
    assert '"minimum": 1' in llm.prompts[0][-1]["content"]


async def test_an_answer_that_is_not_valid_goes_back_to_the_model(context, storage):
    wrong = '{"items": [{"name": "tea", "amount": 0}]}'
    service, llm = make_service(storage, ["Two teas, of course!", wrong, f"```json\n{TEA}\n```"])
    answer = await service.prompt(context, "two teas", output=Order)
    assert answer.output.items[0].amount == 2
    told = [next(each["content"] for each in reversed(prompt[:-1]) if each["role"] == "user") for prompt in llm.prompts]
    assert "Invalid JSON" in told[1]
    assert "items.0.amount: Input should be greater than or equal to 1" in told[2]


async def test_tools_run_before_the_answer_is_given(context, storage):
    service, _ = make_service(storage, [call("add", a=1, b=1), TEA], tools=[add])
    assert (await service.prompt(context, "1 + 1 teas", output=Order)).output.items[0].amount == 2


async def test_where_the_steps_are_used_up_the_program_is_told(context, storage):
    service, llm = make_service(storage, lambda _: "no", max_steps=2)
    with pytest.raises(InvalidOutput, match="the model gave no valid Order: Invalid JSON"):
        await service.prompt(context, "two teas", output=Order)
    assert len(llm.prompts) == 3
    assert (await service.prompt(context, "hello")).text == "no"
    assert llm.prompts[-1][-1]["content"] == "hello"


@pytest.mark.parametrize("output", [dict, "Order", Item(name="x", amount=1), int])
async def test_what_is_no_model_is_refused(context, storage, output):
    service, _ = make_service(storage, [])
    with pytest.raises(InvalidArgument, match="output= must be a class"):
        await service.prompt(context, "two teas", output=output)


def test_the_schema_is_one_that_servers_take():
    schema = OutputForm.of(Order).schema
    assert schema.name == "Order"
    assert schema.schema["required"] == ["items", "due"]
    assert schema.schema["additionalProperties"] is False
    assert schema.schema["properties"]["due"] == {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]}
    item = schema.schema["$defs"]["Item"]
    assert (item["required"], item["properties"]["unit"]) == (["name", "amount", "unit"], {"$ref": "#/$defs/Unit"})


class Shape(BaseModel):
    kind: Literal["circle", "square"]
    size: float


@pytest.mark.parametrize(("model", "is_strict"), [(Shape, True), (Loose, False), (RootModel[list[int]], False)])
def test_a_form_that_no_schema_says_is_asked_for_in_words_alone(model, is_strict):
    assert (OutputForm.of(model).schema is not None) is is_strict


@pytest.mark.parametrize(("api", "path"), [("chat", CHAT), ("responses", RESPONSES)])
async def test_both_apis_send_the_schema_and_go_without_it_where_it_is_refused(storage, api, path):
    refusing = True

    def answer(body):
        has_schema = "response_format" in body or "format" in body.get("text", {})
        if has_schema and refusing:
            text = "'response_format' of type 'json_schema' is not supported with this model."
            return Failure(400, text)
        return TEA

    for refusing in (False, True):
        with OpenAIApi.running(answer) as server:
            llm = OpenAIChatLLM("gpt-test", base_url=server.base_url, api_key="sk-test", api=api)
            context = await AgentContext.get_or_create(storage, {"api": api, "refusing": refusing})
            async with AgentService(FunctionsBasedAgent(llm=llm, search_k=0), storage) as service:
                assert (await service.prompt(context, "two teas", output=Order)).output.due == date(2026, 12, 1)
            bodies = server.bodies(path)
            await llm.close()
        form = bodies[0]["response_format"]["json_schema"] if api == "chat" else bodies[0]["text"]["format"]
        assert (form["name"], form["strict"]) == ("Order", True)
        assert len(bodies) == 1 + refusing
        assert "response_format" not in bodies[-1] if refusing and api == "chat" else True
