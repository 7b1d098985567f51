"""The environment, read once."""

import difflib
import re
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar, get_args
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from botservice.config.env_files import check_lines
from botservice.config.setting_choices import (
    ApiChoice,
    FetchAsks,
    GroupAnswers,
    LogFormat,
    LogLevel,
    ReasoningEffort,
    ReasoningSummary,
    SlackListen,
    SlackPings,
    check_bot_name,
)
from botservice.core.chat_addresses import CHAT_FORMS, ChatAddress
from botservice.core.errors import SettingsError
from botservice.core.loopback import is_loopback
from botservice.core.policies import (
    SHORTEST_ENCRYPTION_KEY,
    AccessMode,
    Limit,
    Prices,
    WebAccess,
    parse_identities,
    parse_limits,
    parse_prices,
)

T = TypeVar("T", bound=StrEnum)

OPENAI_API_URL = "https://api.openai.com/v1"
DEFAULT_EMBEDDING_MODEL = "text-embedding-3-small"
BUILTIN_TOOLS = ("time", "facts", "reminders", "recall")
HAND_OVER = "hand_over"
"""Built in as well, where OWNERS or ALERTS_TO says who can be called."""
WEB_TOOLS = ("fetch_page", "web_search")
"""Built in as well, and off unless TOOLS names them: they reach beyond the chat."""
_TOOLS = (*BUILTIN_TOOLS, HAND_OVER, *WEB_TOOLS)
_NONE = "none"
_HARMLESS = re.compile(r"[a-z][a-z_ ]{0,31}")
DEFAULT_MCP_FILE = Path("mcp.json")
DEFAULT_HOOKS_FILE = Path("hooks.json")
_SKILLS = Path("skills")
SHORTEST_ADMIN_TOKEN = 16
NOTES_TOKENS = 600

# An event's key must be known as long as its platform may deliver it again. Telegram keeps updates for a day (Bot API,
# "Getting updates"); Slack repeats for an hour, and for a day where delayed events are on (Events API, "Retries").
FEWEST_EVENT_DAYS = 3
_MOST_DAYS = 36_500
_DATABASES = frozenset({"sqlite", "postgres", "postgresql"})
_PASSWORD = re.compile(r"[^:]+://[^:@/]*:(.+)@")
_BOT_TOKEN = re.compile(r"[0-9]+:[A-Za-z0-9_-]+")
_API_KEY = re.compile(r"[!-~]+")  # it travels in a header
_A_LIMIT = "limits such as: 10 messages/minute, 200k tokens/day, 20 money/month (tokens and money by day or month)"
_RANDOM_TEXT = "a random text of 16 characters or more, such as `openssl rand -hex 16` gives"
_WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")  # Bot API, setWebhook

# What a person is told that a setting must be, where its type does not say it all: see `_must_be`.
_MUST_BE = {
    # pragma: allowlist nextline secret
    "database_url": "an address such as sqlite:///bot.db or postgresql://user:password@host/name",
    "openai_api_key": "a key as its server gave it, without spaces, in plain letters, digits and signs",
    "openai_fallback_models": "names of models on the same server, with commas between them",
    "openai_base_url": "the address of an OpenAI-compatible server, such as http://localhost:11434/v1",
    "telegram_api_url": "the address of a Bot API server, without /bot at its end",
    "telegram_bot_token": "a token from @BotFather, such as 123456:ABC-DEF",
    "telegram_plain_chats": "numbers of chats, such as 42, -1001234567890",
    "telegram_webhook_secret": "1 to 256 letters, digits, _ or -",
    "encryption_key": "random texts of 32 characters or more, with commas between them where there are several",
    "slack_api_url": "the address of Slack's Web API, such as https://slack.com/api/",
    "slack_app_token": "an app-level token, which begins with xapp-",
    "slack_bot_token": "a bot's token, which begins with xoxb-",
    "public_url": "the https address where platforms reach this service, without a path, a user, a password, ? or # "
    "(http only to a loopback address); give each bot a host name or a port of its own",
    **dict.fromkeys(("admin_token", "metrics_token", "api_token"), _RANDOM_TEXT),
    "database_idle_seconds": "a number of seconds above 0",
    "alerts_to": f"a chat: {CHAT_FORMS}",
    "bot_name": "a name of at most 64 characters, in one line",
    "bot_app": "a module and what it calls its AgentService, such as bot:service",
    "tools": f"a list, with commas between them, of {', '.join(_TOOLS)}; or none",
    "mcp_config": "a file such as mcp.json; or none",
    "hooks_config": "a file such as hooks.json; or none",
    "model_timeout_seconds": "a number of seconds above 0",
    "approval_hours": "a number of hours above 0",
    "owners": "people such as telegram:42 (a number, no @name), slack:T024BE7LD:U2147483697",
    "allowed": "people and chats by their ids: telegram:42, telegram:-100123, slack:T024BE7LD:C2147483705",
    **dict.fromkeys(("budget_person", "budget_chat", "budget_service"), _A_LIMIT),
    "prices": "prices per million tokens, MODEL=INPUT/OUTPUT/CACHED/WRITE, such as: gpt-6.1-terra=1/5/0.05/1.25",
    "keep_steps_days": "a whole number of days, 1 or more, or forever",
    "keep_events_days": "a whole number of days, 3 or more, or forever",
    "ledger_days": "a whole number of days, 1 or more, or forever",
}


def _must_be(name: str) -> str:
    """Return what a person is told that a setting must be."""
    field = Settings.model_fields[name]
    kind: Any = field.annotation
    while inner := get_args(kind):  # of what may be unset, or has a validator
        kind = inner[0]
    if name in _MUST_BE:
        return _MUST_BE[name]
    if kind is bool:
        return "on or off"
    if kind is int:
        least, most = (next((getattr(x, it) for x in field.metadata if hasattr(x, it)), None) for it in ("ge", "le"))
        return f"a whole number, {least} or more" if most is None else f"a whole number from {least} to {most}"
    *others, last = kind if issubclass(kind, StrEnum) else ["a text"]
    return f"{', '.join(others)} or {last}" if others else last


def _database_url(value: str) -> str:
    scheme, separator, _ = value.partition("://")
    if not separator or scheme.partition("+")[0] not in _DATABASES:
        raise ValueError("no address of a database that botservice knows")
    return value


def _http_url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0 or re.search(r"\s", value):
        raise ValueError("no http address")
    return value.rstrip("/")


def _public_url(value: str) -> str:
    url = _http_url(value)
    parts = urlsplit(url)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("plain http")
    if "@" in parts.netloc or "?" in url or "#" in url:  # paths are put behind it, and it is shown
        raise ValueError("more than where it leads")
    if parts.path.strip("/"):  # pages load what they show, and lead on, from the top of the host
        raise ValueError("a path")
    return url


def _bot_api_url(value: str) -> str:
    url = _http_url(value)
    if url.endswith("/bot"):
        raise ValueError("ends with /bot")
    return url


def _matching(pattern: re.Pattern[str]) -> AfterValidator:
    def check(secret: SecretStr) -> SecretStr:
        if not pattern.fullmatch(secret.get_secret_value()):
            raise ValueError("it does not look like one")
        return secret

    return AfterValidator(check)


def _parsed(parse: Callable[[str], object]) -> BeforeValidator:
    return BeforeValidator(lambda value: parse(value) if isinstance(value, str) else value)


def _names(value: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value.replace(",", " ").split()))


def _folders(value: str) -> tuple[Path, ...]:
    """Return folders, which are separated by commas: their names may have spaces."""
    return tuple(dict.fromkeys(Path(each.strip()).expanduser() for each in value.split(",") if each.strip()))


def _chat_ids(value: str) -> frozenset[str]:
    """Return the numbers of chats; a word that is none is refused."""
    return frozenset(str(int(each)) for each in _names(value))


Names = Annotated[tuple[str, ...], NoDecode, _parsed(_names)]
ChatIds = Annotated[frozenset[str], NoDecode, _parsed(_chat_ids)]
Identities = Annotated[frozenset[str], NoDecode, _parsed(parse_identities)]
Limits = Annotated[tuple[Limit, ...], NoDecode, _parsed(parse_limits)]


def _encryption_key(secret: SecretStr) -> SecretStr:
    keys = [key.strip() for key in secret.get_secret_value().split(",") if key.strip()]
    if not keys or min(map(len, keys)) < SHORTEST_ENCRYPTION_KEY:
        raise ValueError("it can be guessed")
    return secret


def _admin_token(secret: SecretStr) -> SecretStr:
    if len(secret.get_secret_value()) < SHORTEST_ADMIN_TOKEN:
        raise ValueError("it can be guessed")
    return secret


def _days(least: int) -> BeforeValidator:
    """Return the type of a number of days; None and 0 mean for ever."""

    def read(value: Any) -> int | None:
        if value is None or str(value).lower() in ("forever", "0"):
            return None
        days = int(value)
        if not least <= days <= _MOST_DAYS:
            raise ValueError("too few, or too many")
        return days

    return BeforeValidator(read)


def _bot_app(value: str) -> str:
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*", value):
        raise ValueError("no module:service")
    return value


def _tools(text: str) -> tuple[str, ...]:
    """Return the names of built-in tools that a list has, each once."""
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if names == [_NONE]:
        return ()
    for number, name in enumerate(names, start=1):
        if name not in _TOOLS:
            raise UnknownTool(name, number)
    return tuple(dict.fromkeys(names))


HttpUrl = Annotated[str, AfterValidator(_http_url)]


class UnknownTool(ValueError):
    """There is no built-in tool of a name. What could be a secret is not repeated."""

    def __init__(self, name: str, number: int) -> None:
        near = difflib.get_close_matches(name, _TOOLS, n=1)
        shown = repr(name) if near or _HARMLESS.fullmatch(name) else f"at place {number} of the list"
        super().__init__(f"there is no tool {shown}{f'; did you mean {near[0]}?' if near else ''}")


class _Environment(BaseSettings):
    """Read values as people write them: spaces around a value are removed, and an empty value is unset."""

    model_config = SettingsConfigDict(env_file=".env", env_ignore_empty=True, extra="ignore", case_sensitive=False)

    @model_validator(mode="before")
    @classmethod
    def _without_blanks(cls, values: Any) -> Any:
        stripped = {name: value.strip() if isinstance(value, str) else value for name, value in values.items()}
        return {name: value for name, value in stripped.items() if value != ""}

    @classmethod
    def load(cls, env_file: Path | None = Path(".env"), **overrides: Any) -> Self:
        """Return the settings of the environment, and of a .env file where there is one.

        Raises:
            SettingsError: values are wrong, or lines of the file cannot be read; the message names each of them and
                what it must be, and repeats no value.
        """
        try:
            if env_file is not None:
                check_lines(env_file, Settings.model_fields)
            return cls(**{"_env_file": env_file, **overrides})
        except ValidationError as error:
            names = dict.fromkeys(str(each["loc"][0]).lower() for each in error.errors())
            wrong = [f"{name.upper()} must be {_must_be(name)}" for name in names]
            causes = [each.get("ctx", {}).get("error") for each in error.errors()]
            for cause in causes:
                if isinstance(cause, UnknownTool):
                    wrong = [f"{each}; {cause}" if each.startswith("TOOLS ") else each for each in wrong]
            raise SettingsError("\n".join(wrong), names=tuple(names)) from None
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "save it as UTF-8"
            raise SettingsError(f"{env_file} cannot be read: {reason}") from None


class ModelSettings(_Environment):
    """Which model answers."""

    # The model
    openai_api_key: Annotated[SecretStr, _matching(_API_KEY)] | None = None
    """The key of OpenAI or of another server. Default: a demo script answers, unless OPENAI_BASE_URL is set."""
    openai_base_url: HttpUrl | None = None
    """An OpenAI-compatible server, usually ending with /v1. Default: https://api.openai.com/v1"""
    openai_model: str | None = None
    """The model's name, as the server knows it. Default: gpt-6.1-terra"""
    openai_fallback_models: Names = ()
    """Models on the same server, with commas, that are called in this order if the first cannot answer.
    See docs/models.md
    """
    openai_api: Annotated[ApiChoice, BeforeValidator(str.lower)] = ApiChoice.AUTO
    """The API of the server: responses, chat (chat.completions) or auto. See docs/models.md"""
    openai_reasoning_effort: Annotated[ReasoningEffort, BeforeValidator(str.lower)] | None = None
    """How much the model reasons: none, minimal, low, medium, high, xhigh or max. Default: the model's own"""
    openai_reasoning_summary: Annotated[ReasoningSummary, BeforeValidator(str.lower)] = ReasoningSummary.OFF
    """Shows a summary while the model reasons, with Responses: auto, concise, detailed or off."""
    openai_embedding_model: str | None = None
    """Adds meaning to search; none turns it off. Default: text-embedding-3-small with OpenAI's own API, otherwise
    search by words
    """
    openai_transcription_model: str | None = None
    """Turns voice messages, audio and video into text, such as gpt-transcribe. Default: a recording is named only"""
    openai_speech_model: str | None = None
    """Speaks answers of up to 1,000 characters to voice messages on Telegram, such as gpt-4o-mini-tts. Default:
    text only
    """
    local_embedding_model: str | None = None
    """Adds meaning to search on this machine: multilingual-e5-small or a folder; it takes precedence. See
    docs/search.md
    """
    model_timeout_seconds: float = Field(120.0, gt=0, allow_inf_nan=False)
    """How many seconds a model may send nothing before it counts as failed."""
    max_answer_tokens: int | None = Field(None, ge=1)
    """The longest answer, sent to the model's server and reserved in budgets. Default: the server's; 4096 are
    reserved
    """

    @property
    def has_model(self) -> bool:
        """Whether a model is configured; without one, a demo answers."""
        return self.openai_api_key is not None or self.openai_base_url is not None

    @property
    def embedding_model(self) -> str | None:
        """The model of OpenAI's API that adds meaning to search, or None if a local one does, or words have to do."""
        if self.local_embedding_model is not None:
            return None
        if self.openai_embedding_model is not None:
            return None if self.openai_embedding_model.lower() == _NONE else self.openai_embedding_model
        is_openai = self.openai_base_url is None or self.openai_base_url == OPENAI_API_URL
        return DEFAULT_EMBEDDING_MODEL if self.openai_api_key is not None and is_openai else None


class Settings(ModelSettings):
    """Every setting, under its name in lower case."""

    # The database
    database_url: Annotated[str, AfterValidator(_database_url)] = Field("sqlite:///botservice.db", repr=False)
    """sqlite:///FILE (four slashes for an absolute path) or postgresql://…"""
    database_idle_seconds: float | None = Field(None, gt=0, allow_inf_nan=False)
    """Lets a serverless Postgres sleep for so many seconds. See docs/postgres.md Default: it never sleeps"""

    # All platforms
    link_previews: bool = False
    """Telegram and Slack may fetch the pages behind links in answers. See docs/privacy.md"""
    encryption_key: Annotated[SecretStr, AfterValidator(_encryption_key)] | None = None
    """Encrypts files and tokens: a random text of 32 characters or more. To change the key, write NEW,OLD.
    Default: no files are encrypted, and nobody can sign in to MCP servers
    """

    # Telegram
    telegram_bot_token: Annotated[SecretStr, _matching(_BOT_TOKEN)] | None = None
    """The bot's token, from @BotFather."""
    telegram_api_url: Annotated[str, AfterValidator(_bot_api_url)] = "https://api.telegram.org"
    """A Bot API server of your own, without /bot at its end."""
    telegram_guests: bool = False
    """Answers people who mention the bot in chats where it is no member. See docs/telegram.md"""
    telegram_plain_chats: ChatIds = frozenset()
    """The numbers of chats that get no rich messages, such as 42, -1001234567890"""
    telegram_rich_messages: bool = True
    """Sends tables, formulas and long answers as rich messages. See docs/telegram-messages.md"""
    telegram_webhook_secret: Annotated[SecretStr, _matching(_WEBHOOK_SECRET)] | None = None
    """The secret of the webhook: 1 to 256 letters, digits, _ or -. Default: derived from the token"""

    # Slack
    slack_bot_token: SecretStr | None = None
    """The bot's token in your workspace, xoxb-…"""
    slack_signing_secret: SecretStr | None = None
    """Turns on events by HTTP."""
    slack_app_token: SecretStr | None = None
    """Turns on Socket Mode, xapp-…"""
    slack_api_url: HttpUrl = "https://slack.com/api"
    """Another address of Slack's Web API."""
    slack_client_id: str | None = None
    """With SLACK_CLIENT_SECRET and ENCRYPTION_KEY: lets other workspaces install the bot. Default: your workspace
    only
    """
    slack_client_secret: SecretStr | None = None
    """See SLACK_CLIENT_ID."""
    slack_listen: Annotated[SlackListen, BeforeValidator(str.lower)] = SlackListen.THREADS
    """The messages of channels that are stored: threads (in which the bot takes part) or channels (all)."""
    slack_pings: Annotated[SlackPings, BeforeValidator(str.lower)] = SlackPings.NONE
    """Whom a model's words may ping: none, users or all."""
    slack_unfurl: bool = False
    """Link previews in Slack only."""

    # The web server
    public_url: Annotated[str, AfterValidator(_public_url)] | None = None
    """The https address where platforms reach this service, without a path. Default: Telegram is polled"""
    host: str = "127.0.0.1"
    """Where the web server listens."""
    port: int = Field(8000, ge=0, le=65535)
    """The port of the web server; 0 takes any."""
    admin_token: Annotated[SecretStr, AfterValidator(_admin_token)] | None = None
    """Required for the web pages; 16 characters or more. Default: the pages work on this machine only,
    and not at all if the listener is reachable from elsewhere
    """
    metrics_token: Annotated[SecretStr, AfterValidator(_admin_token)] | None = None
    """The bearer token of /metrics; 16 characters or more. Default: /metrics works on this machine
    only, and not at all if the listener is reachable from elsewhere
    """
    api_token: Annotated[SecretStr, AfterValidator(_admin_token)] | None = None
    """The bearer token of /api/send; 16 characters or more. See docs/events.md
    """
    metrics_port: int | None = Field(None, ge=0, le=65535)
    """Where a worker serves /metrics, /healthz and /readyz; 0 takes any. Default: a worker listens nowhere"""

    web_access: Annotated[WebAccess, BeforeValidator(str.lower)] = WebAccess.ADMIN
    """Access to the web pages: admin, or link (people open their own chat by /web). See docs/access.md"""

    # The default agent
    max_steps: int = Field(10, ge=0)
    """How many steps of an answer may run tools."""
    window_tokens: int = Field(4000, ge=0)
    """The most tokens of the newest messages in a prompt. See docs/explanation/prompt-caching.md"""
    search_k: int = Field(24, ge=0)
    """The most older messages that search adds to a prompt; 0 for none."""
    search_tokens: int = Field(1000, ge=0)
    """The most tokens of the messages that search adds."""
    observe: bool = True
    """Writes notes of chats and facts about people in the background, if a model is set. See docs/observer.md"""
    observer_model: str | None = None
    """The model that writes them, on the same server. Default: the agent's"""
    group_answers: Annotated[GroupAnswers, BeforeValidator(str.lower)] = GroupAnswers.MENTIONED
    """When the bot answers in groups: mentioned, or listening (a model decides, too). Owners and administrators
    change it for a group with /listen. See docs/guides/listening.md
    """
    gate_model: str | None = None
    """The model that decides, on the same server. Default: the agent's"""
    unasked_per_hour: int = Field(3, ge=0)
    """The most answers in an hour that nobody in a group has asked for."""
    notes_tokens: int = Field(NOTES_TOKENS, ge=0)
    """The most tokens of a chat's notes in a prompt."""
    bot_name: Annotated[str, AfterValidator(check_bot_name)] | None = None
    """The bot's name on the pages and in the standard prompt, at most 64 characters. Default: botservice"""
    bot_app: Annotated[str, AfterValidator(_bot_app)] | None = None
    """Your own AgentService, as module:service. Default: the service that bot.py in this folder assigns, or the
    built-in agent
    """
    system_prompt: str | None = None
    """The instructions of the default agent. Default: a short text"""
    tools: Annotated[tuple[str, ...], NoDecode, _parsed(_tools)] = (*BUILTIN_TOOLS, HAND_OVER)
    """The default agent's tools, with commas between them: time, facts, reminders, recall, hand_over (with OWNERS or
    ALERTS_TO), fetch_page, web_search; or none. See docs/tools.md
    """
    fetch_asks: Annotated[FetchAsks, BeforeValidator(str.lower)] = FetchAsks.MADE_UP
    """When fetch_page asks: made-up (if the asker did not write the address), always or never."""
    mcp_config: str | None = None
    """The file that names MCP servers, or none. See docs/mcp.md Default: mcp.json, if it exists"""
    hooks_config: str | None = None
    """The file that names hooks, by which other programs send events, or none. See docs/events.md Default:
    hooks.json, if it exists
    """
    skills: str | None = None
    """A folder of skills, or none. See docs/tools.md Default: skills, if it exists"""
    knowledge: Annotated[tuple[Path, ...], NoDecode, _parsed(_folders)] = ()
    """Folders with documents that answers may quote, with commas between them. See docs/knowledge.md Default: none"""
    knowledge_tokens: int = Field(1500, ge=0)
    """Tokens of document passages in a prompt; 0 for none. See docs/knowledge.md Default: 1500"""

    approval_hours: float = Field(24.0, gt=0, le=_MOST_DAYS * 24, allow_inf_nan=False)
    """For how many hours a call awaits approval. See docs/approval.md"""

    # Access and budgets
    access: Annotated[AccessMode, BeforeValidator(str.lower)] = AccessMode.OPEN
    """Access to the bot: open, allow or pairing. See docs/access.md"""
    owners: Identities = frozenset()
    """People who may grant access to others, such as telegram:42, slack:T024BE7LD:U2147483697"""
    allowed: Identities = frozenset()
    """People and groups with access, such as telegram:7, telegram:-100123"""
    budget_person: Limits = ()
    """Limits for each person, such as 10 messages/minute, 200k tokens/day, 20 money/month. See docs/access.md
    Default: no limit
    """
    budget_chat: Limits = ()
    """Limits for each chat. Default: no limit"""
    budget_service: Limits = ()
    """Limits for the service. Default: no limit"""
    prices: Annotated[Prices, NoDecode, _parsed(parse_prices)] = Field(default_factory=dict)
    """Prices per million tokens: MODEL=INPUT/OUTPUT/CACHED/WRITE, …; * is any other model. Default: OpenAI's
    prices for gpt-5.5 to gpt-6.1 of November 2026 in USD with OpenAI's own API, otherwise free
    """
    currency: str = "USD"
    """The currency of prices."""

    exports_per_day: int = Field(1, ge=1)
    """How many archives of their data a person may request by /export within 20 hours."""

    # Load and retention
    max_turns: int = Field(256, ge=1, le=4096)  # a lock each: Postgres has 6,400 as it comes
    """How many answers a process makes at once, at most 4096."""
    max_waiting: int = Field(10_000, ge=1)
    """How many turns may wait before platforms have to deliver later."""

    keep_steps_days: Annotated[int | None, _days(1)] = 30
    """For how many days steps, prompts and deliveries of ended turns are kept, or forever. See docs/operating.md"""
    keep_events_days: Annotated[int | None, _days(FEWEST_EVENT_DAYS)] = 7
    """For how many days events of platforms are kept: 3 or more, or forever."""
    ledger_days: Annotated[int | None, _days(1)] = 365
    """For how many days decided approvals are kept, even if their chat is deleted, or forever. See docs/approval.md"""

    # Logs and alerts
    log_level: Annotated[LogLevel, BeforeValidator(str.upper)] = LogLevel.INFO
    """The least level of a log line: DEBUG, INFO, WARNING or ERROR."""
    log_format: Annotated[LogFormat, BeforeValidator(str.lower)] = LogFormat.TEXT
    """The format of log lines: text or json."""
    alerts_to: Annotated[ChatAddress | None, NoDecode, _parsed(ChatAddress.parse)] = None
    """The chat that gets alerts, such as telegram:-100123 or slack:TEAM/CHANNEL. See docs/monitoring.md"""
    record_transitions: bool = False
    """Records each change of a state in the database, for tests. See docs/explanation/protocol.md"""

    @property
    def mcp_file(self) -> Path | None:
        """The file that names MCP servers, or None if there is none."""
        return _chosen(self.mcp_config, DEFAULT_MCP_FILE if DEFAULT_MCP_FILE.is_file() else None)

    @property
    def hooks_file(self) -> Path | None:
        """The file that names hooks, or None if there is none."""
        return _chosen(self.hooks_config, DEFAULT_HOOKS_FILE if DEFAULT_HOOKS_FILE.is_file() else None)

    @property
    def skills_folder(self) -> Path | None:
        """Where skills lie, or None if there are none, or none are wanted."""
        return _chosen(self.skills, _SKILLS if _SKILLS.is_dir() else None)

    def secrets(self) -> list[str]:
        """Return every value that must never be shown."""
        fields = [getattr(self, name) for name in type(self).model_fields]
        found = [field.get_secret_value() for field in fields if isinstance(field, SecretStr)]
        addresses = (self.database_url, self.openai_base_url, self.telegram_api_url, self.slack_api_url)
        passwords = [password for each in addresses if each is not None and (password := _password_in(each))]
        return [*found, *passwords, *map(unquote, passwords)]


def _chosen(given: str | None, usual: Path | None) -> Path | None:
    """Return the file or folder that a setting names, or the usual one where it is unset."""
    if given is None:
        return usual
    return None if given.lower() == _NONE else Path(given).expanduser()


def _password_in(address: str) -> str | None:
    """Return the password of an address; one of a database may hold what an address of the web cannot."""
    if not address.startswith(("http://", "https://")):
        match = _PASSWORD.match(address)
        return None if match is None else match[1]
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    return parts.password or parts.username  # a token may stand where a user's name does


def one_of(choices: type[T], name: str, value: str | None) -> T | None:
    """Return the choice that value names, or None if it is None.

    Raises:
        SettingsError: it names none.
    """
    try:
        return None if value is None else choices(value)
    except ValueError:
        raise SettingsError(f"{name} must be one of {', '.join(choices)}") from None


def reveal(secret: SecretStr | None) -> str | None:
    """Return a secret's value."""
    return None if secret is None else secret.get_secret_value()
