"""A prompt as the items of a Responses request."""

from typing import Any

import pytest

from botservice.llm.chat import SaidMessage
from botservice.llm.openai.options import CallOptions
from botservice.llm.openai.responses import build_body, seals

TERRA = CallOptions("gpt-6.1-terra")
PNG = "data:image/png;base64,iVBORw0KGgo="
REASONING = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a":1}'}
ASKED = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "3"}


def items(*messages: Any, refused: frozenset[str] = frozenset()) -> list[Any]:
    found: list[Any] = build_body(messages, [], TERRA, refused_seals=refused)["input"]
    return found


def said(text: str | None, *given: dict[str, Any], calls: Any = (ASKED,)) -> SaidMessage:
    message = {"role": "assistant", "content": text} | ({"tool_calls": list(calls)} if calls else {})
    return SaidMessage(message, given)


def message(text: str, **fields: Any) -> dict[str, Any]:
    return {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "output_text", "text": text}],
        **fields,
    }


def test_every_kind_of_message_becomes_its_item() -> None:
    picture = {"type": "image_url", "image_url": {"url": PNG}}
    file = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,eA=="}}
    assert items(
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "see"}, picture, file]},
        {"role": "assistant", "content": "I add.", "tool_calls": [ASKED]},
        RESULT,
        {"role": "user", "content": "hello"},
    ) == [
        {"role": "system", "content": "Be kind."},
        {
            "role": "user",
            "content": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": PNG, "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,eA=="},
            ],
        },
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I add."}]},
        {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "3"},
        {"role": "user", "content": "hello"},
    ]


@pytest.mark.parametrize("text", [None, "I add."])
def test_items_of_a_step_go_back_as_they_came(text: str | None) -> None:
    given = [REASONING, *([message("I add.", phase="commentary")] if text else []), CALL]
    assert items(said(text, *given), RESULT)[:-1] == given


@pytest.mark.parametrize(
    "changed",
    [
        said("Something else.", REASONING, CALL),
        said(None, REASONING, CALL | {"arguments": '{"a":2}'}),
        said(None, REASONING, CALL | {"name": "sub"}),
        said(None, REASONING, CALL | {"call_id": "call_2"}),
        said(None, REASONING),
        said(None, REASONING, CALL | {"arguments": '{"a":'}),
    ],
)
def test_items_that_no_longer_say_what_the_step_says_stay_behind(changed: SaidMessage) -> None:
    assert [item.get("type", "message") for item in items(changed, RESULT)][-2:] == [
        "function_call",
        "function_call_output",
    ]
    assert REASONING not in items(changed, RESULT)
    assert all("id" not in item for item in items(changed, RESULT))


def test_a_step_whose_seal_was_refused_goes_without_its_items() -> None:
    step = said(None, REASONING, CALL)
    options = CallOptions("gpt-6.1-terra")
    found = seals([step], options, frozenset())
    assert found == {"sealed", "fc_1"}
    assert items(step, RESULT, refused=found) == items({"role": "assistant", "tool_calls": [ASKED]}, RESULT)
    assert seals([step], options, found) == frozenset()


def test_a_copy_of_a_message_keeps_its_items() -> None:
    step = said(None, REASONING, CALL)
    assert step.copy().items_given == step.items_given
    assert step == dict(step), "it is a dict to everybody else"


@pytest.mark.parametrize(("strict", "expected"), [(None, False), (False, False), (True, True)])
def test_a_function_always_says_whether_it_is_strict(strict: bool | None, expected: bool) -> None:
    function: dict[str, Any] = {"name": "add"} if strict is None else {"name": "add", "strict": strict}
    (tool,) = build_body([], [{"type": "function", "function": function}], TERRA)["tools"]
    assert tool == {"type": "function", "name": "add", "parameters": None, "strict": expected}


def test_a_tool_of_the_server_goes_as_it_is() -> None:
    assert build_body([], [{"type": "web_search"}], TERRA)["tools"] == [{"type": "web_search"}]
