"""Forms and addresses of servers: what people are asked, and what nobody is."""

from typing import Any

import pytest

from botservice.agent.tool_questions import Field, FieldKind, ToolQuestions
from botservice.mcp.elicitation import QuestionRefused, read_form, read_url
from botservice.turns.tool_answers import WrongAnswer, buttons_for, read_answer

TEXT = {"type": "string"}


def form(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


@pytest.mark.parametrize(
    "schema",
    [
        None,
        [],
        {"type": "array"},
        {"type": "object", "properties": []},
        form(a={"type": "object", "properties": {"b": TEXT}}),
        form(a={"type": "array", "items": TEXT}),
        form(a={"type": "array", "items": {"type": "array"}}),
        form(a={"type": "string", "enum": [str(each) for each in range(1_000)]}),
        form(a={"type": "string", "enum": []}),
        form(a={"type": "string", "enum": [1, None]}),
        form(a={"type": "string", "oneOf": "x"}),
        form(a={"$ref": "#/definitions/a"}),
        form(a=True),
        form(**{"": TEXT}),
        form(**{f"f{each}": TEXT for each in range(21)}),
        form(a={**TEXT, "description": "x" * 20_000}),
    ],
)
def test_a_form_that_is_not_flat_or_too_large_is_refused(schema: Any) -> None:
    with pytest.raises(QuestionRefused):
        read_form("Please.", schema)


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("password", TEXT),
        ("apiKey", TEXT),
        ("API_KEY", TEXT),
        ("a", {**TEXT, "title": "Your access token"}),
        ("a", {**TEXT, "description": "the PIN of your card"}),
        ("a", {**TEXT, "format": "password"}),
        ("a", {**TEXT, "writeOnly": True}),
        ("pass\u200bword", TEXT),
        ("\uff50assword", TEXT),
        ("one_time_code", TEXT),
        ("client_secret", TEXT),
        ("p\u0430ssw\u043erd", TEXT),  # with Cyrillic letters
        ("P\u00c4SSWORD", TEXT),
        ("\u03c1assword", TEXT),  # with a Greek one
        ("a", {**TEXT, "title": "\u041f\u0430\u0440\u043e\u043b\u044c"}),  # Russian
        ("a", {**TEXT, "title": "\u65b0\u3057\u3044\u30d1\u30b9\u30ef\u30fc\u30c9"}),  # Japanese
        ("a", {**TEXT, "title": "\ube44\ubc00\ubc88\ud638"}),  # Korean
        ("a", {**TEXT, "title": "\u8bf7\u8f93\u5165\u5bc6\u7801"}),  # Chinese
        ("a", {**TEXT, "description": "Your seed phrase"}),
        ("contrase\u00f1a", TEXT),
        ("mot_de_passe", TEXT),
        ("pass\u2011word", TEXT),
        ("card number", TEXT),
        ("creditCard", TEXT),
        ("pin", {"type": "integer"}),
        ("a", {"type": "number", "title": "Your one-time code"}),
    ],
)
def test_a_form_that_asks_for_a_secret_is_refused(name: str, field: dict[str, Any]) -> None:
    with pytest.raises(QuestionRefused, match="secret"):
        read_form("Please.", form(**{name: field}))


@pytest.mark.parametrize(
    ("name", "field"),
    [
        ("max_tokens", {"type": "integer"}),
        ("secretary", TEXT),
        ("keyboard", TEXT),
        ("spinning", TEXT),
        ("town", TEXT),
        ("\u043f\u0430\u0440\u043e\u043c", TEXT),
    ],
)
def test_what_only_looks_like_a_secret_is_asked(name: str, field: dict[str, Any]) -> None:
    assert read_form("Please.", form(**{name: field})).fields[0].name == name


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "http://example.com",
        "https://bank.example@evil.example/",
        "https://:pw@evil.example/",
        "https://exаmple.com/",  # noqa: RUF001 - a Cyrillic letter
        "https://example.com/a b",
        "https://example.com\\@evil.example/",
        "https:///path",
        "https://example.com:99999/",
        "https://[::1",
        "https://example.com/" + "x" * 3_000,
        "",
        None,
    ],
)
def test_only_a_plain_address_is_shown(url: Any) -> None:
    with pytest.raises(QuestionRefused):
        read_url("Please.", url)


def test_questions_are_stored_and_read_as_they_were() -> None:
    schema = form(
        size={"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        when={"type": "string", "format": "date", "title": "\ud800 day \x00"},
        tags={"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 1},
    )
    question = read_form("\ud800 Please.\x00", schema)
    assert [each.kind for each in question.fields] == [FieldKind.CHOICE, FieldKind.TEXT, FieldKind.CHOICES]
    asked = ToolQuestions("server", (question,), {"request_state": "s"}).with_value("s").with_value(None)
    assert ToolQuestions.of_json(asked.to_json()) == asked
    assert (asked.place, asked.step, asked.is_over) == (2, 2, False)
    assert asked.with_value(["a"]).replies[0].content == {"size": "s", "tags": ["a"]}


@pytest.mark.parametrize(("kind", "said"), [("integer", "1,000"), ("integer", "1.000"), ("number", "1,000")])
def test_a_number_that_may_be_another_one_is_asked_for_again(kind: str, said: str) -> None:
    with pytest.raises(WrongAnswer):
        read_answer(Field("n", FieldKind(kind), "n"), said, "en")


def test_a_choice_that_looks_like_a_button_of_ours_is_told_apart() -> None:
    options = (("a", "Yes"), ("b", "Decline"), ("c", "d\u0435cline "), ("d", "Leave out"))
    buttons = buttons_for(3, 0, Field("n", FieldKind.CHOICE, "n", is_required=False, options=options), "en")
    labels = ["Yes", "2: Decline", "3: d\u0435cline ", "4: Leave out", "Leave out", "Decline"]
    assert [each.text for each in buttons] == labels


def test_a_decimal_comma_is_read() -> None:
    assert read_answer(Field("n", FieldKind.NUMBER, "n"), "1,5", "en") == 1.5
