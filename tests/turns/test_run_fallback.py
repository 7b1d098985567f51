"""A turn whose first model cannot answer is gone on with by the next one, and its steps say by which."""

import pytest
from standins.openai_api import RESPONSES, OpenAIApi, Reply, ToolUse, quota_exceeded, rate_limited, server_error
from standins.openai_catalogue import model_not_found, overloaded

from botservice import FallbackLLM, LLMError, OpenAIChatLLM
from tests.turns.bots import make_service

pytestmark = pytest.mark.any_database

FIRST, SECOND = "gpt-6.1-terra", "gpt-6-luna"


class Minds:
    """What each model replies, by its name and by how many tools have run."""

    def __init__(self):
        self.replies = {}

    def __call__(self, body):
        done = sum(1 for message in body["messages"] if message["role"] == "tool")
        return self.replies.get((body["model"], done)) or self.replies.get(body["model"]) or f"I am {body['model']}"


@pytest.fixture
def minds():
    return Minds()


@pytest.fixture
def api(minds):
    with OpenAIApi.running(minds) as server:
        yield server


@pytest.fixture(params=["responses", "chat"])
async def llm(request, api):
    effort = {"reasoning_effort": "none"} if request.param == "chat" else {}
    made = FallbackLLM(
        OpenAIChatLLM(name, base_url=api.base_url, api_key="sk-test", api=request.param, **effort)
        for name in (FIRST, SECOND)
    )
    yield made
    await made.close()


async def models_of(context):
    return [step.get_value("model") for step in (await context.load_memory()).steps[1:]]


@pytest.mark.parametrize(
    "failure",
    [model_not_found(FIRST), rate_limited(60), quota_exceeded(), server_error(500), overloaded(), Reply(drop_after=0)],
)
async def test_the_second_model_answers_where_the_first_cannot(minds, llm, context, storage, failure):
    minds.replies[FIRST] = failure
    service, _ = make_service(storage, llm)
    assert (await service.prompt(context, "go")).text == f"I am {SECOND}"
    assert await models_of(context) == [SECOND]


async def test_a_model_that_hangs_is_passed_over(minds, llm, context, storage):
    await llm.chat([{"role": "user", "content": "hello"}])  # it is connected
    minds.replies[FIRST] = Reply(hang=True)
    llm.llms[0].timeout_seconds = 0.5
    service, _ = make_service(storage, llm)
    assert (await service.prompt(context, "go")).text == f"I am {SECOND}"


async def test_what_is_wrong_by_itself_is_asked_of_one_alone(api, minds, llm, context, storage):
    minds.replies[FIRST] = server_error(400)
    service, _ = make_service(storage, llm)
    with pytest.raises(LLMError, match="400"):
        await service.prompt(context, "go")
    assert {request.body["model"] for request in (*api.requests(), *api.requests(RESPONSES))} == {FIRST}


async def test_each_step_says_which_model_gave_it(minds, llm, context, storage):
    minds.replies |= {(FIRST, 0): ToolUse("add", {"a": 1, "b": 1}), (FIRST, 1): overloaded()}
    minds.replies[SECOND, 1] = ToolUse("add", {"a": 2, "b": 1})
    service, _ = make_service(storage, llm)
    assert (await service.prompt(context, "go")).text == f"I am {SECOND}"
    assert await models_of(context) == [FIRST, SECOND, SECOND]


async def test_nobody_is_given_what_another_model_thought(api, minds, context, storage):
    minds.replies |= {(FIRST, 0): ToolUse("add", {"a": 1, "b": 1}), (FIRST, 1): overloaded()}
    llm = FallbackLLM(
        OpenAIChatLLM(name, base_url=api.base_url, api_key="sk-test", api="responses") for name in (FIRST, SECOND)
    )
    service, _ = make_service(storage, llm)
    assert (await service.prompt(context, "go")).text == f"I am {SECOND}"
    await llm.close()
    last = api.bodies(RESPONSES)[-1]
    assert last["model"] == SECOND
    kinds = [item.get("type", item.get("role")) for item in last["input"]]
    assert kinds[-2:] == ["function_call", "function_call_output"]
    assert "reasoning" not in kinds


async def test_where_all_fail_the_service_tries_all_again(minds, llm, context, storage):
    minds.replies |= {FIRST: overloaded(), SECOND: overloaded()}
    service, _ = make_service(storage, llm)
    with pytest.raises(LLMError, match=rf"no model answered: {FIRST}: .+; {SECOND}: .+"):
        await service.prompt(context, "go")
    minds.replies.clear()
    run = await service.resume(context)
    assert (await run.finish()).text in {f"I am {FIRST}", f"I am {SECOND}"}
