"""An answer that is not whole says so to the person; a refusal is an answer."""

import pytest

from botservice import ChatResponse, PlanningStep
from botservice.texts import LANGUAGES
from botservice.turns.answer_message import with_ending
from botservice.turns.turn_work import thinking_about
from tests.turns.bots import make_service


@pytest.mark.any_database
async def test_an_answer_that_was_cut_says_so_and_its_step_has_the_models_words(context, storage):
    service, llm = make_service(storage, [ChatResponse("It begins wi", finish_reason="length"), "ok"])
    answer = await service.prompt(context, "go")
    assert answer.text.startswith("It begins wi\n\n(My answer was cut off here")
    final = (await context.load_memory()).steps[-1]
    assert (final.output, final.finish_reason) == ("It begins wi", "length")
    assert len(llm.prompts) == 1


@pytest.mark.any_database
@pytest.mark.parametrize("blank", ["", "\u200b"])
@pytest.mark.parametrize(("reason", "says"), [("length", "ran out of space"), ("refusal", "declined to answer")])
async def test_an_ending_without_words_is_an_answer_and_not_asked_for_again(context, storage, reason, says, blank):
    service, llm = make_service(storage, [ChatResponse(blank, finish_reason=reason)])
    assert says in (await service.prompt(context, "go")).text
    assert len(llm.prompts) == 1


async def test_a_refusal_in_words_stands_as_it_is(context, storage):
    service, _ = make_service(storage, [ChatResponse("I will not.", finish_reason="refusal")])
    assert (await service.prompt(context, "go")).text == "I will not."


@pytest.mark.any_database
async def test_an_answer_that_is_whole_is_left_alone(context, storage):
    service, _ = make_service(storage, [ChatResponse("ok", finish_reason="stop")])
    assert (await service.prompt(context, "go")).text == "ok"


@pytest.mark.any_database
async def test_plans_carry_what_is_known_of_their_answer(context, storage):
    plan = ChatResponse("a plan", model="m-2", finish_reason="stop", items=({"type": "message", "id": "msg_1"},))
    service, _ = make_service(storage, [plan, "ok"], planning_interval=5)
    await service.prompt(context, "go")
    (step,) = [step for step in (await context.load_memory()).steps if isinstance(step, PlanningStep)]
    assert (step.model, step.finish_reason, step.model_items) == ("m-2", "stop", [{"type": "message", "id": "msg_1"}])


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_ending_is_said_in_every_language(language):
    texts = [
        with_ending("Text", "length", language),
        with_ending(" ", "length", language),
        with_ending("", "refusal", language),
    ]
    english = [with_ending("Text", "length", None), with_ending("", "length", "xx"), with_ending("", "refusal", "en")]
    assert len({*texts, *english}) == (3 if language == "en" else 6)


@pytest.mark.parametrize(
    ("summary", "shown"),
    [
        ("**Weighing the question**\n\nIt is not hard.", "thinking about weighing the question"),
        ("The weather in Porto.\nMore", "thinking about the weather in Porto"),
        ("# A title", "thinking about a title"),
        ("x" * 200, f"thinking about {'x' * 80}…"),
        ("", ""),
        ("\n ", ""),
        ("****", "thinking about ****"),
    ],
)
def test_a_summary_of_thoughts_is_shown_by_its_title(summary, shown):
    assert thinking_about(summary) == shown
