"""What a question shows of arguments: what is acted on is seen, what is secret is not, and nothing hides or forges."""

import unicodedata
from datetime import UTC, datetime

import pytest
from turns.bots import waiting_call

from botservice import Author
from botservice.texts import LANGUAGES
from botservice.turns.approval_message import ApprovalRequest, show_requests
from botservice.turns.call_decisions import order_of, parse_order
from botservice.turns.commands import parse_command
from botservice.turns.readable_arguments import has_masked, readable_arguments

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
ALICE = Author("telegram", "1", "Alice")


def asked(number, **arguments):
    return ApprovalRequest(waiting_call(number, author=ALICE), arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"passwords": "hunter2"},
        {"userpassword": "hunter2"},
        {"accesstoken": "hunter2"},
        {"secretkey": "hunter2"},
        {"X-Api-Key": "hunter2"},
        {"apiKeys": ["hunter2"]},
        {"url": "https://ann:hunter2@db.example/x"},
        {"body": '{"password": "hunter2"}'},
        {"otp": "hunter2"},
        {"otpCode": "hunter2"},
        {"clientSecret": "hunter2"},
        {"SLACK_BOT_TOKEN": "hunter2"},
        {"OAuthTokens": "hunter2"},
        {"passWord": "hunter2"},
        {"password_2": "hunter2"},
        {"token-value": "hunter2"},
        {"awsSecretAccessKey": "hunter2"},
        {"APIKey": "hunter2"},
        {"credentials_json": "hunter2"},
        {"cookies": "hunter2"},
    ],
)
def test_a_secret_is_not_shown(arguments):
    assert "hunter2" not in readable_arguments(arguments)[0]
    assert has_masked(arguments)
    assert "Dots hide what looks like a secret" in show_requests([asked(1, **arguments)], "en", NOW).text


@pytest.mark.parametrize(
    "arguments",
    [
        {"key": "customers/all"},
        {"pin": "board"},
        {"sign": "x"},
        {"max_tokens": 5},
        {"issue_key": "A-1"},
        {"secretary": "Mallory"},
        {"theSecretariat": "Mallory"},
        {"tokens_receiver": "Mallory"},
        {"cookies_to_buy": "12 of them"},
        {"tokenizer": "cl100k"},
        {"passwordless": "yes"},
        {"cookiecutter": "star"},
    ],
)
def test_what_is_acted_on_is_shown(arguments):
    assert str(next(iter(arguments.values()))) in readable_arguments(arguments)[0]
    assert not has_masked(arguments)


def test_a_word_that_only_looks_secret_shows_where_it_begins_and_ends():
    shown, _ = readable_arguments({"run": "curl https://sk-evil-collector-of-all.example/x"})
    assert shown == "run: curl https://sk-e••••••-all (24).example/x"


def test_a_secret_is_not_shown_whole_and_nothing_promises_to_show_it():
    question = show_requests([asked(1, password="hunter2")], "en", NOW)
    assert "password: •••••• (7)" in question.text
    assert "/allow show" not in question.text, "it shows the dots as well"
    assert "/allow show 1" in show_requests([asked(1, password="hunter2", note="x" * 400)], "en", NOW).text
    many = [asked(each, password="hunter2") for each in range(1, 7)]
    assert [button.says.split()[0] for button in show_requests(many, "en", NOW).buttons] == ["/deny"]


@pytest.mark.parametrize("sign", ["\u3164", "\u2800", "\u034f", "\ufe00", "\U000e0101", "\u2065", "\u200b", "\u00a0"])
def test_a_sign_that_shows_nothing_is_written_out(sign):
    written = f"\\u{ord(sign):04x}" if ord(sign) <= 0xFFFF else f"\\U{ord(sign):08x}"
    assert written in readable_arguments({"text": f"a{sign}b"})[0]


ALIKE = {
    "nothing": (None, "null", '"null"', '""null""'),
    "yes": (True, "true", '"true"'),
    "a number": (1, "1", '"1"', 1.0, "1.0", " 1"),
    "no number": ("NaN", "-Infinity", "Infinity"),
    "an object": ({}, "{}", '"{}"', "{ }"),
    "a list": ([None], "[null]", ["null"], '["null"]', '[ "null" ]'),
    "lines": ({"a": "x\n"}, '{"a": "x\n"}', '{"a": "x\\n"}', '{"a": "x\\\\n"}'),
    "a long number": ("9" * 5000, "8" * 5000),
    "a letter and its mark": ("ros\u00e9", "rose\u0301", "rose\\u0301"),
    "two marks": ("\u1e69", "s\u0323\u0307", "s\u0307\u0323", "\u1e63\u0307", "\u1e61\u0323"),
    "a syllable": ("\uac01", "\u1100\u1161\u11a8", "\uac00\u11a8"),
    "a sign of its own": ("\u00c5", "\u212b", "A\u030a"),
    "a semicolon": ("a;b", "a\u037eb"),
    "a backtick": ("`id`", "\u1fefid\u1fef"),
}


@pytest.mark.parametrize("values", ALIKE.values(), ids=ALIKE)
def test_no_two_values_look_alike(values):
    shown = [readable_arguments({"to": each}, is_short=False)[0] for each in values]
    shown += [readable_arguments({"to": [each]}, is_short=False)[0] for each in values]
    assert len({unicodedata.normalize("NFC", each) for each in shown}) == len(shown), shown


def test_a_text_that_reads_as_another_value_stands_in_quotation_marks():
    shown, is_whole = readable_arguments(
        {"to": "null", "amount": 5, "note": "5 apples", "body": '{"password": "hunter2hunter2"}'}
    )
    assert shown == 'to: "null"\namount: 5\nnote: 5 apples\nbody: "{"password": "h••••••2 (14)"}"'
    assert not is_whole


@pytest.mark.parametrize("deep", ["[" * 100_000, "[" * 100_000 + "]" * 100_000])
def test_a_text_that_is_nested_too_deep_to_be_read_is_shown(deep):
    assert deep[:50] in readable_arguments({"to": deep})[0]


def test_spaces_cannot_push_words_out_of_sight():
    assert readable_arguments({"text": "a" + " " * 200 + "b"})[0] == "text: a⟨200 spaces⟩b"


def test_an_argument_cannot_pass_as_others_and_what_is_cut_is_not_allowed_all_at_once():
    forged = asked(1, note="rent); to: Anna; amount: 5", to="Mallory")
    question = show_requests([forged, *(asked(each, to="Bob") for each in range(2, 8))], "en", NOW)
    assert 'note: "rent); to: Anna; amount: 5"; to: "Mallory"' in question.text
    assert [button.says.split()[0] for button in question.buttons] == ["/allow", "/deny"]
    long = show_requests([asked(1, note="x" * 900), *(asked(each, to="Bob") for each in range(2, 8))], "en", NOW)
    assert [button.says.split()[0] for button in long.buttons] == ["/deny"]


@pytest.mark.parametrize("count", [41, 60, 300])
def test_very_many_calls_are_cut_with_a_count_and_stay_one_message(count):
    calls = [asked(1000 + each, to=f"Person {each}", amount=each) for each in range(count)]
    message = show_requests(calls, "en", NOW)
    assert f"these {count} actions" in message.text
    assert f"And {count - 40} more. To see all of them: /allow show all" in message.text
    assert len(message.text) < 3_000, "Slack shows no more in one block"
    (deny,) = message.buttons
    assert order_of(deny.says) is not None
    assert len(deny.says) < 2_000


def test_every_call_of_a_message_can_be_seen_on_demand():
    order = parse_order(parse_command("/allow show all"))
    assert (order.is_showing, order.is_all) == (True, True)


@pytest.mark.parametrize("language", LANGUAGES)
def test_where_no_buttons_are_shown_a_question_says_what_to_write_and_nothing_of_buttons(language):
    for calls in ([asked(3)], [asked(3), asked(4)]):
        written = show_requests(calls, language, NOW, has_buttons=False).text
        pressed = show_requests(calls, language, NOW).text
        assert "/allow 3" in written
        assert "/deny 3" in written
        assert len(written) < len(pressed)
