"""Where one model cannot answer, the next one does: once, and never in the middle of an answer."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest
from standins.openai_api import Failure, Gate, OpenAIApi, Reply, context_length_exceeded, quota_exceeded, rate_limited
from standins.openai_catalogue import model_not_found, no_access, overloaded, wrong_key

from botservice import ChatResponse, ContextOverflow, FallbackLLM, LLMError, LLMFailure, OpenAIChatLLM, ScriptedChatLLM

HELLO = [{"role": "user", "content": "hello"}]


class Minds:
    """What each model replies; by default its own name."""

    def __init__(self) -> None:
        self.replies: dict[str, Any] = {}

    def __call__(self, body: dict[str, Any]) -> Any:
        return self.replies.get(body["model"], f"I am {body['model']}")


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def minds(api: OpenAIApi) -> Minds:
    api.reply = minds = Minds()
    return minds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def llm(api: OpenAIApi, minds: Minds, clock: Clock) -> AsyncIterator[FallbackLLM]:
    models = [OpenAIChatLLM(name, base_url=api.base_url) for name in ("first", "second", "third")]
    llm = FallbackLLM(models, clock=clock)
    yield llm
    await llm.close()


def asked(api: OpenAIApi) -> list[str]:
    return [body["model"] for body in api.bodies()]


async def test_the_first_model_answers_while_it_can(api: OpenAIApi, llm: FallbackLLM) -> None:
    response = await llm.chat(HELLO)
    assert (response.text, response.model) == ("I am first", "first")
    assert asked(api) == ["first"]


@pytest.mark.parametrize(
    "failure",
    [
        model_not_found("first"),
        no_access("first"),
        Failure(404, "model 'first' not found"),
        Failure(410, "retired", code="model_deprecated"),
        quota_exceeded(),
        Failure(402, "Insufficient credits"),
        Failure(500, "oops", "server_error"),
        overloaded(),
        Failure(529, "Overloaded"),
        rate_limited(30),
        Reply(drop_after=0),
    ],
    ids=lambda failure: str(getattr(failure, "status", "cut off")),
)
async def test_the_next_model_answers_at_once_where_one_cannot(
    api: OpenAIApi, minds: Minds, llm: FallbackLLM, failure: Any
) -> None:
    minds.replies["first"] = failure
    shown: list[str] = []
    response = await llm.chat(HELLO, on_text=shown.append)
    assert (response.text, response.model) == ("I am second", "second")
    assert "".join(shown) == "I am second"
    assert asked(api) == ["first", "second"]


async def test_models_are_asked_in_their_order(api: OpenAIApi, minds: Minds, llm: FallbackLLM) -> None:
    minds.replies |= {"first": overloaded(), "second": model_not_found("second")}
    assert (await llm.chat(HELLO)).model == "third"
    assert asked(api) == ["first", "second", "third"]


async def test_a_model_at_an_address_where_nobody_listens_is_passed_over(api: OpenAIApi, minds: Minds) -> None:
    nowhere = OpenAIChatLLM("first", base_url="http://127.0.0.1:1/v1")
    llm = FallbackLLM([nowhere, OpenAIChatLLM("second", base_url=api.base_url)])
    assert (await llm.chat(HELLO)).model == "second"
    await llm.close()


async def test_a_model_that_hangs_is_given_up_for_the_next(api: OpenAIApi, minds: Minds, llm: FallbackLLM) -> None:
    await llm.chat(HELLO)  # it is connected: what follows is about the silence alone
    minds.replies["first"] = Reply(hang=True)
    llm.llms[0].timeout_seconds = 0.3  # type: ignore[attr-defined]  # it is an OpenAIChatLLM
    assert (await llm.chat(HELLO)).model == "second"


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Failure(400, "Invalid 'messages'", code="invalid_value"), LLMError),
        (Failure(422, "no"), LLMError),
        (context_length_exceeded(), ContextOverflow),
        (wrong_key(), LLMError),
        (Failure(403, "no"), LLMError),
    ],
)
async def test_a_request_that_is_wrong_by_itself_is_not_tried_on_all(
    api: OpenAIApi, minds: Minds, llm: FallbackLLM, failure: Failure, error: type[LLMError]
) -> None:
    minds.replies["first"] = failure
    with pytest.raises(error):
        await llm.chat(HELLO)
    assert asked(api) == ["first"]
    minds.replies.clear()
    assert (await llm.chat(HELLO)).model == "first", "it says nothing of the model"


async def test_a_refusal_is_an_answer(api: OpenAIApi, minds: Minds, llm: FallbackLLM) -> None:
    minds.replies["first"] = Reply(refusal="I will not do that.")
    response = await llm.chat(HELLO)
    assert (response.text, response.model) == ("I will not do that.", "first")


async def test_a_model_that_is_busy_for_a_moment_is_asked_once_more(
    api: OpenAIApi, minds: Minds, llm: FallbackLLM
) -> None:
    replies = [rate_limited(0.01), "I am back"]
    api.reply = lambda _: replies.pop(0)
    response = await llm.chat(HELLO)
    assert (response.text, response.model) == ("I am back", "first")


async def test_a_model_that_stays_busy_is_passed_over(api: OpenAIApi, minds: Minds, llm: FallbackLLM) -> None:
    minds.replies["first"] = rate_limited(0.01)
    assert (await llm.chat(HELLO)).model == "second"
    assert asked(api) == ["first", "first", "second"]


@pytest.mark.parametrize("reply", [Reply(text="Once upon a time", drop_after=2), Reply(text="Once upon", fail_after=2)])
async def test_an_answer_that_breaks_off_is_not_gone_on_with_by_another(
    api: OpenAIApi, minds: Minds, llm: FallbackLLM, reply: Reply
) -> None:
    minds.replies["first"] = reply
    shown: list[str] = []
    with pytest.raises(LLMError) as caught:
        await llm.chat(HELLO, on_text=shown.append)
    assert caught.value.is_transient
    assert shown
    assert asked(api) == ["first"]
    assert (await llm.chat(HELLO)).model == "second", "whoever tries again asks the next one"


async def test_an_answer_that_breaks_off_unseen_is_given_by_the_next(
    api: OpenAIApi, minds: Minds, llm: FallbackLLM
) -> None:
    minds.replies["first"] = Reply(text="Once upon a time", drop_after=2)
    assert (await llm.chat(HELLO)).model == "second"


async def test_a_model_that_failed_is_left_alone_and_tried_again_later(
    api: OpenAIApi, minds: Minds, llm: FallbackLLM, clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    minds.replies["first"] = overloaded()
    for _ in range(3):
        assert (await llm.chat(HELLO)).model == "second"
    assert asked(api) == ["first", "second", "second", "second"]
    minds.replies.clear()
    clock.now = 3600.0
    assert (await llm.chat(HELLO)).model == "first"
    said = [(record.message, record.model) for record in caplog.records if record.message.startswith("model.")]
    assert said == [("model.left_alone", "first"), ("model.back", "first")]


async def test_one_call_alone_tries_a_model_that_failed(
    api: OpenAIApi, minds: Minds, llm: FallbackLLM, clock: Clock
) -> None:
    minds.replies["first"] = overloaded()
    await llm.chat(HELLO)
    clock.now = 3600.0
    gate = Gate()
    minds.replies["first"] = Reply(text="I am back", wait=gate)
    trying = asyncio.create_task(llm.chat(HELLO))
    await api.call(lambda body: body["model"] == "first", since=api.requests()[-1].seq)
    others = await asyncio.gather(*(llm.chat(HELLO) for _ in range(20)))
    assert {other.model for other in others} == {"second"}
    gate.open()
    assert (await trying).model == "first"
    assert (await llm.chat(HELLO)).model == "first"


async def test_a_try_that_somebody_stops_is_made_by_another(
    api: OpenAIApi, minds: Minds, llm: FallbackLLM, clock: Clock
) -> None:
    minds.replies["first"] = overloaded()
    await llm.chat(HELLO)
    clock.now = 3600.0
    minds.replies["first"] = Reply(hang=True)
    trying = asyncio.create_task(llm.chat(HELLO))
    await api.call(lambda body: body["model"] == "first", since=api.requests()[-1].seq)
    trying.cancel()
    await asyncio.wait([trying])
    minds.replies.clear()
    assert (await llm.chat(HELLO)).model == "first"


@pytest.mark.slow
async def test_many_chats_ask_a_model_that_is_down_no_more_often_than_they_began(
    api: OpenAIApi, minds: Minds, llm: FallbackLLM
) -> None:
    minds.replies["first"] = overloaded()
    answers = await asyncio.gather(*(llm.chat(HELLO) for _ in range(50)))
    assert {answer.model for answer in answers} == {"second"}
    assert asked(api).count("first") <= 50
    asked_before = asked(api).count("first")
    await asyncio.gather(*(llm.chat(HELLO) for _ in range(50)))
    assert asked(api).count("first") == asked_before


async def test_where_all_are_left_alone_each_is_asked_all_the_same(
    api: OpenAIApi, minds: Minds, llm: FallbackLLM
) -> None:
    minds.replies |= {"first": model_not_found("first"), "second": overloaded(), "third": overloaded()}
    with pytest.raises(LLMError):
        await llm.chat(HELLO)
    minds.replies.clear()
    assert (await llm.chat(HELLO)).model == "second", "the one whose pause ends first"


@pytest.mark.parametrize(
    ("first", "second", "is_transient", "kind"),
    [
        (overloaded(), model_not_found("second"), True, LLMFailure.UNAVAILABLE),
        (model_not_found("first"), overloaded(), True, LLMFailure.UNAVAILABLE),
        (model_not_found("first"), quota_exceeded(), False, LLMFailure.UNKNOWN_MODEL),
    ],
)
async def test_where_none_answers_the_error_names_each_and_says_whether_waiting_helps(
    api: OpenAIApi, minds: Minds, first: Failure, second: Failure, is_transient: bool, kind: LLMFailure
) -> None:
    minds.replies |= {"first": first, "second": second}
    llm = FallbackLLM([OpenAIChatLLM(name, base_url=api.base_url) for name in ("first", "second")])
    with pytest.raises(LLMError, match=r"no model answered: first: .+; second: .+") as caught:
        await llm.chat(HELLO)
    assert (caught.value.is_transient, caught.value.kind) == (is_transient, kind)
    await llm.close()


async def test_foreign_code_that_breaks_is_passed_over() -> None:
    llm = FallbackLLM([ScriptedChatLLM([RuntimeError("broken")], model="first"), ScriptedChatLLM(["yes"], model="b")])
    response = await llm.chat(HELLO)
    assert (response.text, response.model) == ("yes", "b")


async def test_the_tools_and_the_prompt_reach_whoever_answers() -> None:
    second = ScriptedChatLLM(["yes"])
    tools = [{"type": "function", "function": {"name": "now"}}]
    await FallbackLLM([ScriptedChatLLM([LLMError("down")]), second]).chat(HELLO, tools)
    assert (second.prompts, second.tools) == ([HELLO], [tools])


async def test_it_goes_by_the_first_name_and_closes_all() -> None:
    closed: list[str] = []

    class Closing(ScriptedChatLLM):
        async def close(self) -> None:
            closed.append(self.model)

    llm = FallbackLLM([Closing([], model="a"), ScriptedChatLLM([], model="b"), Closing([], model="c")])
    assert (llm.model, llm.models) == ("a", ("a", "b", "c"))
    await llm.close()
    assert sorted(closed) == ["a", "c"]


def test_it_needs_a_model() -> None:
    with pytest.raises(ValueError, match="needs models"):
        FallbackLLM([])


async def test_inside_of_another_it_says_who_answered() -> None:
    inner = FallbackLLM([ScriptedChatLLM([LLMError("down")], model="a"), ScriptedChatLLM(["yes"], model="b")])
    assert (await FallbackLLM([inner, ScriptedChatLLM([], model="c")]).chat(HELLO)).model == "b"


class Dawdling:
    """Says a word, if it does, and takes its time for the rest."""

    model = "dawdling"

    def __init__(self, first_word: str = "") -> None:
        self.first_word = first_word

    async def chat(self, messages: Any, tools: Any = (), *, on_text: Any = None) -> ChatResponse:
        on_text(self.first_word)
        await asyncio.sleep(0.5)
        return ChatResponse(f"{self.first_word} done")


async def test_after_a_failure_nobody_is_waited_for_who_says_nothing() -> None:
    llm = FallbackLLM([ScriptedChatLLM([LLMError("down")]), Dawdling()], patience_seconds=0.05)
    with pytest.raises(LLMError, match="dawdling: the model sent nothing in time") as caught:
        await llm.chat(HELLO, on_text=lambda _: None)
    assert caught.value.is_transient
    assert caught.value.failed_for_seconds >= 0.05, "the service counts it among its own tries"


async def test_after_a_failure_whoever_has_begun_may_take_its_time() -> None:
    llm = FallbackLLM([ScriptedChatLLM([LLMError("down")]), Dawdling("well,")], patience_seconds=0.05)
    assert (await llm.chat(HELLO, on_text=lambda _: None)).text == "well, done"


async def test_without_a_failure_a_model_may_take_its_time() -> None:
    llm = FallbackLLM([Dawdling(), ScriptedChatLLM([])], patience_seconds=0.05)
    assert (await llm.chat(HELLO, on_text=lambda _: None)).text == " done"


async def test_thoughts_are_handed_on_where_a_model_shows_them_and_are_no_answer() -> None:
    class Thinking(ScriptedChatLLM):
        shows_thoughts = True

        async def chat(
            self, messages: Any, tools: Any = (), *, on_text: Any = None, on_thought: Any = None
        ) -> ChatResponse:
            on_thought("hm")
            return await super().chat(messages, tools, on_text=on_text)

    llm = FallbackLLM([Thinking([LLMError("down")]), ScriptedChatLLM(["yes"])])
    assert llm.shows_thoughts
    thoughts: list[str] = []
    assert (await llm.chat(HELLO, on_text=lambda _: None, on_thought=thoughts.append)).text == "yes"
    assert thoughts == ["hm"]
    assert not FallbackLLM([ScriptedChatLLM([])]).shows_thoughts
