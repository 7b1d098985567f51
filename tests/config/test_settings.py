"""Settings: every name of the contract, read as people write them, refused by name, and never shown."""

from pathlib import Path
from typing import Any

import pytest

from botservice.config.settings import Settings, reveal
from botservice.core.errors import SettingsError
from botservice.core.loopback import is_loopback
from botservice.core.policies import Limit, Period, Price, Unit

NAMES = [name.upper() for name in Settings.model_fields]


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_the_names_are_those_of_the_contract() -> None:
    contract = [
        *("DATABASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "OPENAI_EMBEDDING_MODEL"),
        *("MODEL_TIMEOUT_SECONDS", "TELEGRAM_BOT_TOKEN", "TELEGRAM_API_URL", "TELEGRAM_WEBHOOK_SECRET"),
        *("SLACK_BOT_TOKEN", "SLACK_SIGNING_SECRET", "SLACK_APP_TOKEN", "SLACK_API_URL", "PUBLIC_URL", "HOST", "PORT"),
        *(
            "ADMIN_TOKEN",
            "MAX_STEPS",
            "WINDOW_TOKENS",
            "SEARCH_K",
            "SEARCH_TOKENS",
            "TOOLS",
            "SYSTEM_PROMPT",
            "LOG_LEVEL",
            "LOG_FORMAT",
        ),
    ]
    assert set(contract) <= set(NAMES)


def test_without_any_setting_everything_has_its_default() -> None:
    settings = Settings.load()
    assert settings.database_url == "sqlite:///botservice.db"
    assert not settings.has_model
    assert settings.embedding_model is None
    assert settings.telegram_api_url == "https://api.telegram.org"
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert (settings.max_steps, settings.window_tokens) == (10, 4000)
    assert (settings.search_k, settings.search_tokens) == (24, 1000)
    assert settings.model_timeout_seconds == 120
    assert (settings.log_level, settings.log_format) == ("INFO", "text")


@pytest.mark.parametrize("empty", ["", " ", "\t\n"])
def test_an_empty_value_counts_as_unset(monkeypatch: pytest.MonkeyPatch, empty: str) -> None:
    for name in NAMES:
        monkeypatch.setenv(name, empty)
    assert Settings.load() == Settings.model_validate({})


WRONG: list[tuple[str, list[str], str]] = [
    ("DATABASE_URL", ["bot.db", "mysql://h/x", "sqlite:bot.db", "postgres:/h/x"], "sqlite:///bot.db or postgresql://"),
    (
        "OPENAI_BASE_URL",
        ["localhost:11434", "ftp://x", "http://", "http://a b/", "http://x:port/v1"],
        "http://localhost:11434/v1",
    ),
    ("MODEL_TIMEOUT_SECONDS", ["0", "-1", "soon", "nan", "inf"], "above 0"),
    ("TELEGRAM_BOT_TOKEN", ["token", "123456", ":abc", "a1:abc", "123:", "123:a b"], "@BotFather"),
    ("TELEGRAM_API_URL", ["api.telegram.org", "https://api.telegram.org/bot"], "without /bot"),
    ("TELEGRAM_WEBHOOK_SECRET", ["a b", "ü", "a" * 257], "1 to 256"),
    ("OPENAI_API", ["v2", "chat.completions"], "auto, responses or chat"),
    ("OPENAI_REASONING_EFFORT", ["extreme", "0"], "none, minimal, low"),
    ("OPENAI_REASONING_SUMMARY", ["yes"], "off, auto, concise or detailed"),
    ("OPENAI_API_KEY", ["sk-ä", "sk-1 2", "“sk-1”"], "without spaces"),
    ("SLACK_API_URL", ["slack.com"], "https://slack.com/api/"),
    ("SLACK_LISTEN", ["everything"], "threads or channels"),
    ("SLACK_PINGS", ["some"], "none, users or all"),
    ("SLACK_UNFURL", ["perhaps"], "on or off"),
    ("ENCRYPTION_KEY", ["short", ","], "32 characters"),
    (
        "PUBLIC_URL",
        [
            *(
                "example.org",
                "http://example.org",
                "http://10.0.0.1",
                "https://x.example/path?x=1",
                "https://x.example/bot",
            ),
            *("https://x.example/?", "https://x.example#top", "https://me:hunter2@x.example", "https://me@x.example"),
        ],
        "the https address where platforms reach this service, without a path, a user, a password, ? or #",
    ),
    ("PORT", ["-1", "65536", "http", "80.5"], "0 to 65535"),
    ("MAX_STEPS", ["-1", "many", "1.5"], "0 or more"),
    ("WINDOW_TOKENS", ["-1", "all"], "0 or more"),
    ("SEARCH_K", ["-1", "x"], "0 or more"),
    ("TOOLS", ["clock", "time, facts, hammer"], "recall, hand_over, fetch_page, web_search; or none"),
    ("SEARCH_TOKENS", ["-1", "x"], "0 or more"),
    ("KEEP_STEPS_DAYS", ["-1", "a month", "1.5", "9999999999"], "1 or more, or forever"),
    ("KEEP_EVENTS_DAYS", ["1", "2"], "3 or more, or forever"),
    ("ACCESS", ["closed", "yes"], "open, allow or pairing"),
    ("OWNERS", ["alice", "telegram:", ":42", "Telegram 42", "slack:U2147483697", "telegram:@alice"], "telegram:42"),
    ("ALLOWED", ["42", "telegram:abc", "telegram:--1", "telegram:-100:1", "telegram:042"], "telegram:-100123"),
    (
        "BUDGET_PERSON",
        ["10", "ten messages/minute", "10 messages/day", "1 tokens/minute", "0 tokens/day", "1.5 tokens/day"],
        "200k tokens/day",
    ),
    ("BUDGET_CHAT", ["1k tokens/day, 2k tokens/day", "5 money/minute", "-1 money/day"], "20 money/month"),
    ("BUDGET_SERVICE", ["1 USD/month", "1m tokens"], "10 messages/minute"),
    ("PRICES", ["gpt", "gpt=1", "gpt=1/2/3/4/5", "gpt=a/b", "gpt=1/2, gpt=1/2"], "MODEL=INPUT/OUTPUT/CACHED"),
    ("MAX_ANSWER_TOKENS", ["0", "-1", "long"], "1 or more"),
    ("LOG_LEVEL", ["LOUD", "10"], "DEBUG, INFO, WARNING or ERROR"),
    ("LOG_FORMAT", ["xml"], "text or json"),
]


@pytest.mark.parametrize(
    ("name", "value", "says"), [(name, value, says) for name, values, says in WRONG for value in values]
)
def test_a_wrong_value_names_itself_and_what_it_must_be(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert str(caught.value).startswith(f"{name} must be ")
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_wrong_values_are_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, values, _ in WRONG:
        monkeypatch.setenv(name, values[0])
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert sorted(line.split()[0] for line in str(caught.value).splitlines()) == sorted(name for name, *_ in WRONG)


RIGHT: list[tuple[str, str, Any]] = [
    ("database_url", "postgres://u:p@h:5432/x?sslmode=require", "postgres://u:p@h:5432/x?sslmode=require"),
    ("database_url", "postgresql+psycopg://u@h/x", "postgresql+psycopg://u@h/x"),
    ("database_url", "sqlite:////data/bot.db", "sqlite:////data/bot.db"),
    ("database_url", "sqlite://", "sqlite://"),
    ("openai_base_url", " http://[::1]:11434/v1/ ", "http://[::1]:11434/v1"),
    ("openai_model", "\tllama3 \n", "llama3"),
    ("public_url", "https://bot.example.org/", "https://bot.example.org"),
    ("public_url", "http://127.0.0.1:9000", "http://127.0.0.1:9000"),
    ("public_url", "http://localhost:9000", "http://localhost:9000"),
    ("port", " 0 ", 0),
    ("max_steps", "0", 0),
    ("keep_steps_days", " 1 ", 1),
    ("keep_steps_days", "Forever", None),
    ("keep_events_days", "0", None),
    ("access", "Pairing", "pairing"),
    ("owners", "telegram:42,slack:T1:U2\nweb:x", frozenset({"telegram:42", "slack:T1:U2", "web:x"})),
    ("budget_person", "10 messages/minute", (Limit(10, Unit.MESSAGES, Period.MINUTE),)),
    (
        "budget_service",
        "1.5m tokens / day, 2.50 money/month",
        (Limit(1_500_000, Unit.TOKENS, Period.DAY), Limit(2_500_000_000, Unit.MONEY, Period.MONTH)),
    ),
    (
        "prices",
        "a/b:free=0/0, gpt-6.1-terra = 1/5/0.05",
        {"a/b:free": Price(0, 0, 0), "gpt-6.1-terra": Price(1_000_000_000, 5_000_000_000, 50_000_000)},
    ),
    ("log_level", "debug", "DEBUG"),
    ("log_format", "JSON", "json"),
    ("system_prompt", "You are\nRex.", "You are\nRex."),
]


@pytest.mark.parametrize(("name", "value", "read"), RIGHT)
def test_a_right_value_is_read_without_the_blanks_around_it(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, read: Any
) -> None:
    monkeypatch.setenv(name.upper(), value)
    assert getattr(Settings.load(), name) == read


SECRETS = {
    "OPENAI_API_KEY": "hidden-key",
    "SLACK_BOT_TOKEN": "xoxb-hidden",
    "SLACK_SIGNING_SECRET": "hidden-signature",
    "SLACK_APP_TOKEN": "xapp-hidden",
    "ADMIN_TOKEN": "hidden-door-of-the-house",
}


def test_secrets_are_stripped_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, secret in SECRETS.items():
        monkeypatch.setenv(name, f" {secret} ")
    monkeypatch.setenv("TELEGRAM_BOT_TOKEN", "123456:hidden-token")
    monkeypatch.setenv("TELEGRAM_WEBHOOK_SECRET", "hidden-webhook")
    monkeypatch.setenv("DATABASE_URL", "postgres://user:hidden%20pass@host/x")
    settings = Settings.load()
    assert reveal(settings.openai_api_key) == "hidden-key"
    assert "hidden" not in f"{settings!r}{settings}"
    assert set(settings.secrets()) == {
        *SECRETS.values(),
        "123456:hidden-token",
        "hidden-webhook",
        "hidden%20pass",
        "hidden pass",
    }


@pytest.mark.parametrize("url", ["postgres://user:a#b/c@d@host/x", "postgres://user:[x@host/x"])
def test_a_password_with_signs_of_its_own_is_a_secret_too(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv("DATABASE_URL", url)
    assert url.removeprefix("postgres://user:").rpartition("@")[0] in Settings.load().secrets()


@pytest.mark.parametrize("name", ["DATABASE_URL", "TELEGRAM_BOT_TOKEN", "TELEGRAM_WEBHOOK_SECRET", "PORT"])
def test_no_error_repeats_a_value(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "mysql://user:hunter22@host/§")
    with pytest.raises(SettingsError) as caught:
        Settings.load()
    assert "hunter22" not in f"{caught.value}{caught.value!r}"
    assert caught.value.__suppress_context__


def test_a_dotenv_file_is_read_and_the_environment_counts_before_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text(
        'PORT=1\nMAX_STEPS=2 # two\nSYSTEM_PROMPT="You are\\nRex"\nUNKNOWN=x\n', encoding="utf-8"
    )
    monkeypatch.setenv("PORT", "3")
    settings = Settings.load()
    assert (settings.port, settings.max_steps, settings.system_prompt) == (3, 2, "You are\nRex")


def test_an_empty_variable_leaves_the_file_its_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PORT=1\n")
    monkeypatch.setenv("PORT", "")
    assert Settings.load().port == 1


def test_a_dotenv_file_that_is_no_text_is_said(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"PORT=\xff\xfe\n")
    with pytest.raises(SettingsError, match=r"\.env, line 1: cannot be read; save the file as UTF-8"):
        Settings.load()


def test_the_example_file_is_right_and_changes_nothing() -> None:
    example = Path(__file__).parents[2] / ".env.example"
    assert Settings.load(example) == Settings.load()
    named = {line.partition("=")[0] for line in example.read_text().splitlines() if line and not line.startswith("#")}
    assert named <= set(NAMES)


@pytest.mark.parametrize(
    ("key", "url", "model", "embedding"),
    [
        ("k", "", "", "text-embedding-3-small"),
        ("k", "https://api.openai.com/v1/", "", "text-embedding-3-small"),
        ("k", "http://localhost:11434/v1", "", None),
        ("", "http://localhost:11434/v1", "", None),
        ("", "http://localhost:11434/v1", "nomic-embed-text", "nomic-embed-text"),
        ("k", "", "None", None),
    ],
)
def test_which_model_adds_meaning_to_search(
    monkeypatch: pytest.MonkeyPatch, key: str, url: str, model: str, embedding: str | None
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    monkeypatch.setenv("OPENAI_EMBEDDING_MODEL", model)
    assert Settings.load().embedding_model == embedding
    monkeypatch.setenv("LOCAL_EMBEDDING_MODEL", "models/minilm")
    assert Settings.load().embedding_model is None
    assert Settings.load().local_embedding_model == "models/minilm"


@pytest.mark.parametrize(
    ("host", "is_ours"),
    [("localhost", True), ("127.0.0.2", True), ("[::1]", True), ("0.0.0.0", False), ("bot.org", False)],
)
def test_which_hosts_are_this_machine(host: str, is_ours: bool) -> None:
    assert is_loopback(host) is is_ours
