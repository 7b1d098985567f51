"""Whatever shape and wording a server's error has, it is read as one of a small set of outcomes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from standins.openai_api import OpenAIApi, Recorded

from botservice import LLMError, OpenAIChatLLM
from botservice.core.errors import LLMFailure
from botservice.llm.chat import picture_digest
from botservice.llm.openai.errors import judge, read_error

WORDINGS = [
    json.loads(line) for line in (Path(__file__).parents[1] / "data" / "model_errors.jsonl").read_text().splitlines()
]

HELLO: Final = [{"role": "user", "content": "hello"}]
PIXEL: Final = "data:image/png;base64,iVBORw0KGgo="
TOOLS: Final = [{"type": "function", "function": {"name": "add", "description": "", "parameters": {"type": "object"}}}]
SHAPES: Final[dict[str, Callable[[str], str]]] = {
    "an object": lambda text: json.dumps({"error": {"message": text, "code": 400}}),
    "a list": lambda text: json.dumps([{"error": {"message": text, "code": 400}}]),
    "a text": lambda text: json.dumps({"error": text}),
    "a detail": lambda text: json.dumps({"detail": text}),
    "a list of details": lambda text: json.dumps({"detail": [{"loc": ["body"], "msg": text}]}),
    "a message": lambda text: json.dumps({"object": "error", "message": text, "code": 400}),
    "one inside of another": lambda text: json.dumps(
        {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps({"message": text})}}}
    ),
    "plain text": lambda text: text,
    "a page": lambda text: f"<html><body><h1>{text}</h1></body></html>",
}


def _name(wording: dict[str, Any]) -> str:
    return f"{wording['kind']}-{wording['from']}"


@pytest.mark.parametrize("wording", WORDINGS, ids=_name)
def test_a_wording_has_the_outcome_that_its_provider_means(wording: dict[str, Any]) -> None:
    body = wording["body"]
    sent = body if isinstance(body, str) else json.dumps(body)
    outcome = judge(read_error(sent.encode(), wording["status"]))
    assert (outcome.kind.value, outcome.refused) == (wording["kind"], wording.get("refused"))


def test_the_table_has_at_least_sixty_wordings() -> None:
    assert len(WORDINGS) >= 60


async def _error_of(api: OpenAIApi, llm: OpenAIChatLLM, recorded: Recorded) -> LLMError:
    api.reply = lambda _: recorded
    with pytest.raises(LLMError) as caught:
        await llm.chat(HELLO)
    return caught.value


@pytest.mark.parametrize("shape", [SHAPES[name] for name in SHAPES], ids=list(SHAPES))
@pytest.mark.parametrize("status", [400, 200])
async def test_the_text_of_any_shape_is_read_in_the_place_of_an_answer_and_inside_of_one(
    api: OpenAIApi, llm: OpenAIChatLLM, shape: Callable[[str], str], status: int
) -> None:
    body = shape("Input is too long for requested model.")
    sent = Recorded(f"data: {body}\n\n".encode()) if status == 200 else Recorded(body.encode(), "text/plain", status)
    assert (await _error_of(api, llm, sent)).kind is LLMFailure.OVERFLOW
    assert len(api.requests()) == 1


@pytest.mark.parametrize(
    ("code", "kind", "transient"),
    [
        (401, LLMFailure.UNAUTHORIZED, False),
        (402, LLMFailure.OUT_OF_QUOTA, False),
        (429, LLMFailure.RATE_LIMITED, True),
        (502, LLMFailure.UNAVAILABLE, True),
    ],
)
async def test_an_error_inside_of_an_answer_is_tried_again_only_where_that_may_help(
    api: OpenAIApi, llm: OpenAIChatLLM, code: int, kind: LLMFailure, transient: bool
) -> None:
    said = json.dumps({"error": {"message": "my secret is 12345", "code": code}})
    error = await _error_of(api, llm, Recorded(f": PROCESSING\n\ndata: {said}\n\n".encode()))
    assert (error.kind, error.is_transient) == (kind, transient)
    assert "12345" not in str(error)


async def test_a_picture_that_a_model_does_not_take_is_no_word_about_the_model(
    api: OpenAIApi, llm: OpenAIChatLLM
) -> None:
    said = json.dumps({"error": {"message": "No endpoints found that support image input", "code": 404}})
    error = await _error_of(api, llm, Recorded(said.encode(), "application/json", 404))
    assert (error.kind, error.refused, error.is_transient) == (LLMFailure.UNSUPPORTED_INPUT, "image", False)


@pytest.mark.parametrize("name", ["stream_options", "max_completion_tokens"])
@pytest.mark.parametrize("number", range(14))
async def test_a_field_is_left_out_however_its_refusal_is_worded(api: OpenAIApi, name: str, number: int) -> None:
    refusal = [each for each in WORDINGS if each.get("refused") in ("stream_options", "max_completion_tokens")]
    wording = refusal[number % len(refusal)]
    text = json.dumps(wording["body"]).replace(wording["refused"], name)

    def reply(body: dict[str, Any]) -> Recorded | str:
        return Recorded(text.encode(), "application/json", wording["status"]) if name in body else "hi"

    api.reply = reply
    llm = OpenAIChatLLM("m", base_url=api.base_url, api_key="none", max_answer_tokens=50)
    assert [(await llm.chat(HELLO)).text, (await llm.chat(HELLO)).text] == ["hi", "hi"]
    assert len(api.requests()) == 3, "it is remembered"
    assert api.bodies()[-1].get("max_tokens") == (50 if name == "max_completion_tokens" else None)
    await llm.close()


@pytest.mark.parametrize(
    "words", ["this server does not support images", "tools are not supported", "unknown field: 'temperature'"]
)
async def test_what_is_refused_with_and_without_a_field_takes_nothing_away_for_later(
    api: OpenAIApi, words: str
) -> None:
    """The words may be those of a template or of a person that a server repeats, and about something else."""
    shown = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    prompt = [{"role": "user", "content": shown}]
    llm = OpenAIChatLLM("m", base_url=api.base_url, api_key="none", temperature=0.5)
    api.reply = lambda _: Recorded(json.dumps({"error": {"message": words}}).encode(), "application/json", 400)
    with pytest.raises(LLMError):
        await llm.chat(prompt, TOOLS)
    assert len(api.requests()) == 2, "it was asked once without"
    api.reply = lambda _: "a dot"
    assert (await llm.chat(prompt, TOOLS)).left_out == ()
    sent = api.bodies()[-1]
    assert PIXEL in json.dumps(sent)
    assert sent["tools"]
    assert sent["temperature"] == 0.5
    await llm.close()


async def test_one_picture_that_a_server_cannot_read_takes_no_other_one_away(
    api: OpenAIApi, llm: OpenAIChatLLM
) -> None:
    said = json.dumps({"error": {"message": "Could not process image", "type": "invalid_request_error"}})

    def reply(body: dict[str, Any]) -> Recorded | str:
        is_damaged = "damaged" in json.dumps(body["messages"])
        return Recorded(said.encode(), "application/json", 400) if is_damaged else "a dot"

    api.reply = reply
    whole, damaged = PIXEL, "data:image/png;base64,damaged"
    shown = [
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]} for url in (whole, damaged)
    ]
    assert (await llm.chat(shown)).left_out == (picture_digest(damaged),)
    assert (await llm.chat(shown)).text == "a dot"
    assert len(api.requests()) == 3, "it is remembered"
    assert all(whole in json.dumps(body["messages"]) for body in api.bodies())


@pytest.mark.parametrize("is_damaged_first", [True, False])
async def test_pictures_of_which_any_may_be_damaged_hold_up_no_answer(
    api: OpenAIApi, llm: OpenAIChatLLM, is_damaged_first: bool
) -> None:
    def reply(body: dict[str, Any]) -> Recorded | str:
        is_damaged = "damaged" in json.dumps(body["messages"])
        return Recorded(b"Could not process image", "text/plain", 400) if is_damaged else "a dot"

    api.reply = reply
    urls = [PIXEL, *(PIXEL.replace("Kg", f"Kg{each}") for each in ("AAAA", "BBBB"))]
    urls.insert(0 if is_damaged_first else 3, "data:image/png;base64,damaged")
    shown = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]} for url in urls]
    assert (await llm.chat(shown)).text == "a dot"
    assert len(api.requests()) == (3 if is_damaged_first else 2)


def test_a_page_that_never_ends_its_tags_is_read_once() -> None:
    """A pattern that looked for each end again took a minute for so much."""
    assert read_error(b"<style" * 30_000, 502).text.strip() == ""
    assert read_error(b"<" * 180_000, 502).text == "<" * 8_000
    assert read_error(b"<p>Bad <b>gateway</b></p><style>a{}</style>", 502).text.split() == ["Bad", "gateway"]
