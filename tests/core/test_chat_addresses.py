"""Naming a chat as an operator writes it."""

import pytest

from botservice.config.settings import Settings
from botservice.core.chat_addresses import ChatAddress
from botservice.core.errors import SettingsError


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("telegram:42", {"transport": "telegram", "chat_id": "42"}),
        ("telegram:-100123", {"transport": "telegram", "chat_id": "-100123"}),
        ("telegram:-100123/7", {"transport": "telegram", "chat_id": "-100123", "thread_id": "7"}),
        ("slack:T024/C2147", {"transport": "slack", "team_id": "T024", "channel_id": "C2147"}),
        (
            "slack:T024/C2147/1700000000.000100",
            {"transport": "slack", "team_id": "T024", "channel_id": "C2147", "thread_ts": "1700000000.000100"},
        ),
        ("slack:T024/D2147/1700000000.000100", {"transport": "slack", "team_id": "T024", "channel_id": "D2147"}),
        ("web:p42-3", {"transport": "web", "session_id": "p42-3"}),
        ("transport=discord channel=7", {"transport": "discord", "channel": "7"}),
        ("transport=discord,channel=7", {"transport": "discord", "channel": "7"}),
    ],
)
def test_a_chat_is_named_by_its_platform_and_its_ids(text, keys):
    assert ChatAddress.parse(text) == ChatAddress(None, keys)


def test_a_number_is_that_of_a_context():
    assert ChatAddress.parse("17") == ChatAddress(17, {})


@pytest.mark.parametrize(
    "text",
    [
        "telegram:@name",
        "telegram:",
        "slack:C1",
        "slack:T1/C1/7",
        "web:a b",
        "irc:x",
        "-4",
        "a=",
        "=b",
        "a=b c",
        "9" * 19,
    ],
)
def test_what_names_no_chat_is_refused_with_the_forms_and_without_its_value(text):
    with pytest.raises(
        SettingsError, match=r"ALERTS_TO must be a chat: telegram:CHAT_ID\[/THREAD_ID\], slack:TEAM/CHANNEL"
    ) as error:
        Settings.load(env_file=None, alerts_to=text)
    assert text not in str(error.value) or text == "telegram:"


@pytest.mark.parametrize("text", ["17", "telegram:-100123", "transport=discord channel=7"])
def test_the_environment_names_it_in_the_same_words(monkeypatch, text):
    monkeypatch.setenv("ALERTS_TO", text)
    assert Settings.load(env_file=None).alerts_to == ChatAddress.parse(text)
