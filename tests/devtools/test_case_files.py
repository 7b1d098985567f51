"""The file of cases: what is wrong in it is told with its line and what to do."""

import pytest

from botservice import BotServiceError
from botservice.devtools.cases import read_suite

HEAD = "cases:\n  - question: Hi\n"


@pytest.mark.parametrize(
    ("text", "line", "remedy"),
    [
        ("", "", "begins with cases:"),
        ("cases: [", ", line 1", "stream end"),
        ("model: a", ", line 1", "has a list cases:"),
        ("cases: []", ", line 1", "no cases"),
        ("cases: Hi", ", line 1", "must be a list"),
        ("cases:\n  - Hi", ", line 2", "must be a mapping"),
        ("cases:\n  - name: a", ", line 2", "one of question, messages, turn and turns"),
        (HEAD + "    turn: 1", ", line 2", "one of question, messages, turn and turns"),
        (HEAD + "    question: Ho", ", line 3", "question is there twice"),
        (HEAD + "    expekt: {}", ", line 3", "no 'expekt'"),
        (HEAD + "    expect:\n      contain: a", ", line 4", "no 'contain'; there are: contains"),
        (HEAD + "    expect:\n      max_tokens: many", ", line 4", "must be a number"),
        (HEAD + "    expect:\n      max_tokens: 1.5", ", line 4", "must be a whole number"),
        (HEAD + "    expect:\n      language: xx", ", line 4", "must be one of ar, "),
        (HEAD + '    expect:\n      regex: ["a", "(a)\\\\1"]', ", line 4", "back-references"),
        (HEAD + "    history:\n      - Rex", ", line 4", "must be a mapping"),
        (HEAD + "    history:\n      - {user: a, assistant: b}", ", line 4", "user: … or assistant: …"),
        (HEAD + "    tools:\n      - name: add", ", line 4", "a result or an error"),
        (HEAD + "    context: a:1", ", line 3", "context goes with turn"),
        ("cases:\n  - turn: 1", ", line 2", "needs its context"),
        ("cases:\n  - turn: 0\n    context: a:1", ", line 2", "1 or more"),
        ("cases:\n  - turn: 1\n    context: a:1\n    facts: [a]", ", line 4", "is in the record"),
        ("cases:\n  - messages: []", ", line 2", "no messages"),
        ("cases:\n  - messages:\n    - role: boss", ", line 3", "has a role"),
        ("cases:\n  - messages:\n    - role: user", ", line 3", "has a content"),
    ],
)
def test_what_is_wrong_is_told_with_its_line_and_the_remedy(text, line, remedy):
    with pytest.raises(BotServiceError) as raised:
        read_suite(text, "cases.yaml")
    assert str(raised.value).startswith(f"cases.yaml{line}")
    assert remedy in str(raised.value)


@pytest.mark.parametrize("number", [".nan", ".inf", "-.inf", "1" * 30, "1" * 400, "1e300", "!!bool maybe", '!!int ""'])
@pytest.mark.parametrize("rule", ["max_tokens", "max_cost"])
def test_a_limit_that_no_answer_could_break_or_keep_is_refused(rule, number):
    with pytest.raises(BotServiceError, match=r"line 4: .* must be a number"):
        read_suite(f"{HEAD}    expect:\n      {rule}: {number}", "cases.yaml")


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        ("&a {a: *a}", "nested too deep"),
        ("{a: " + "[" * 90 + "]" * 90 + "}", None),
        ("{a: " + "[" * 100 + "]" * 100 + "}", "nested too deep"),
        ("{a: " + "[" * 50_000 + "]" * 50_000 + "}", "nested too deep"),
        (
            "{a0: &a0 [1], " + ", ".join(f"a{n + 1}: &a{n + 1} [{f'*a{n}, ' * 10}]" for n in range(20)) + "}",
            "more than 200,000 values",
        ),
        ("{a: !!bool maybe, b: !!int '', c: .nan}", None),
    ],
)
@pytest.mark.slow
def test_a_short_text_that_aliases_or_depth_make_endless_is_refused(arguments, remedy):
    text = f"{HEAD}    tools:\n      - {{name: add, result: 5, arguments: {arguments}}}"
    if remedy is None:
        assert read_suite(text).cases[0].tools
        return
    with pytest.raises(BotServiceError, match=remedy):
        read_suite(text)


def test_a_whole_file_is_read():
    suite = read_suite(
        """
model: gpt-6-luna
prompt: Be kind.
judge: gpt-6.1-sol
cases:
  - name: dog
    question: What is my dog called?
    author: Ann
    history: [{user: My dog is called Rex}, {assistant: Nice}]
    facts: I eat no meat
    tools:
      - {name: add, arguments: {a: 2, day: 2026-01-31}, result: 5}
      - {name: add, error: no}
    expect: {contains: Rex, not_contains: [cat, cow], max_tokens: 50, max_cost: 0.01, language: EN, judge: It is kind}
  - {context: "telegram:42", turns: [7, 9], call: 2}
  - {context: "telegram:42", turn: 3, name: ""}
"""
    )
    dog, seven, nine, three = suite.cases
    assert (suite.model, suite.prompt, suite.judge) == ("gpt-6-luna", "Be kind.", "gpt-6.1-sol")
    assert dog.history == (("user", "My dog is called Rex"), ("assistant", "Nice"))
    assert dog.facts == ("I eat no meat",)
    assert [(call.arguments, call.result, call.is_error, is_for_all) for call, is_for_all in dog.tools] == [
        ({"a": 2, "day": "2026-01-31"}, "5", False, False),
        ({}, "no", True, True),
    ]
    assert (dog.expect.contains, dog.expect.not_contains) == (("Rex",), ("cat", "cow"))
    assert (dog.expect.max_tokens, dog.expect.max_cost, dog.expect.language) == (50, 0.01, "en")
    assert [(each.context, each.turn, each.call, each.name) for each in (seven, nine)] == [
        ("telegram:42", 7, 2, "turn 7 of telegram:42"),
        ("telegram:42", 9, 2, "turn 9 of telegram:42"),
    ]
    assert three.name == "turn 3 of telegram:42"
    assert suite.needs_judge
    assert suite.needs_record
