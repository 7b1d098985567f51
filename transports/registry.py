"""Which transports the settings turn on. A transport is imported only where it is."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from botservice.commands.command import Command
from botservice.commands.web import web_command
from botservice.config.setting_choices import SlackPings
from botservice.config.settings import OPENAI_API_URL, Settings, reveal
from botservice.core.errors import SettingsError
from botservice.core.policies import WebAccess
from botservice.turns.transport import Transport

if TYPE_CHECKING:
    from botservice.devtools.replayer import Replayer
    from botservice.service import AgentService
    from transports.files.documents import DocumentReaders
    from transports.files.speech_to_text import OpenAITranscriber
    from transports.slack.app import SlackTransport
    from transports.slack.installing import OAuthApp
    from transports.telegram.app import TelegramTransport


def build_transports(settings: Settings, service: "AgentService | None" = None) -> Sequence[Transport]:
    """Return the transports that have what they need, and those that the service brings itself.

    Raises:
        SettingsError: one of the service's has the name of another one.
    """
    from transports.web.app import WebTransport
    from transports.web.owner_token import PageAccess

    found: list[Transport] = []
    if service is not None and settings.web_access is WebAccess.LINK:
        service.commands.add(web_command(settings.public_url))
    reading = build_reading(settings)  # one for all: what it bounds is bounded for the whole process
    offered = None if service is None else service.commands.offered(service.agent.tools)
    if settings.telegram_bot_token is not None:
        found.append(build_telegram(settings, reading, offered))
    if has_slack(settings):
        found.append(build_slack(settings, reading, tuple if service is None else lambda: list(service.agent.tools)))
    asker = None if service is None else partial(_make_asker, service, settings)
    found.append(
        WebTransport(
            access=PageAccess.of(settings),
            reading=reading,
            commands=offered,
            service=service,
            asker=asker,
            bot_name=(None if service is None else service.name) or settings.bot_name,
        )
    )
    found.extend(() if service is None else service.transports)
    names = [transport.name for transport in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise SettingsError(f"two transports are called {', '.join(sorted(twice))}: give yours another name")
    return found


def _make_asker(service: "AgentService", settings: Settings) -> "Replayer":
    from botservice.devtools.replayer import Replayer

    return Replayer(service, settings)


def build_telegram(
    settings: Settings, reading: "DocumentReaders | None" = None, commands: Sequence[Command] | None = None
) -> "TelegramTransport":
    """Return the transport of Telegram, which has a token."""
    from transports.telegram.app import TelegramTransport

    return TelegramTransport(
        token=reveal(settings.telegram_bot_token) or "",
        api_url=settings.telegram_api_url,
        webhook_secret=reveal(settings.telegram_webhook_secret),
        public_url=settings.public_url,
        reading=reading or build_reading(settings),
        previews=settings.link_previews,
        commands=commands,
        guests=settings.telegram_guests,
        rich_messages=settings.telegram_rich_messages,
        plain_chats=settings.telegram_plain_chats,
    )


def build_reading(settings: Settings) -> "DocumentReaders":
    """Return what can be read of the files that people send; speech only where a model for it is set."""
    from botservice.agent.reader import PdfReader
    from transports.files.documents import DocumentReaders

    return DocumentReaders(build_transcriber(settings), PdfReader())


def build_transcriber(settings: Settings) -> "OpenAITranscriber | None":
    """Return what turns speech into text, or None if OPENAI_TRANSCRIPTION_MODEL is unset.

    Raises:
        SettingsError: it is set, and there is no server to ask.
    """
    if settings.openai_transcription_model is None:
        return None
    from transports.files.speech_to_text import OpenAITranscriber

    if not settings.has_model:
        raise SettingsError("OPENAI_TRANSCRIPTION_MODEL needs OPENAI_API_KEY, or OPENAI_BASE_URL for another server")
    url = settings.openai_base_url or OPENAI_API_URL
    return OpenAITranscriber(url, model=settings.openai_transcription_model, api_key=reveal(settings.openai_api_key))


def has_slack(settings: Settings) -> bool:
    """Return whether there is a workspace to speak in, or a way for workspaces to come."""
    return settings.slack_bot_token is not None or settings.slack_client_id is not None


def build_slack(
    settings: Settings, reading: "DocumentReaders | None" = None, tools: Callable[[], Sequence[str]] = tuple
) -> "SlackTransport":
    """Return the transport of Slack.

    Raises:
        SettingsError: what installations need is not all there.
    """
    from transports.slack.app import Manners, SlackTransport
    from transports.slack.formatting import Pings

    pings = settings.slack_pings
    return SlackTransport(
        token=reveal(settings.slack_bot_token),
        signing_secret=reveal(settings.slack_signing_secret),
        app_token=reveal(settings.slack_app_token),
        api_url=settings.slack_api_url,
        oauth=_oauth_app(settings),
        manners=Manners(
            listening=settings.slack_listen,
            pings=Pings(users=pings is not SlackPings.NONE, everybody=pings is SlackPings.ALL),
            previews=settings.link_previews or settings.slack_unfurl,
            reading=reading or build_reading(settings),
            tools=tools,
        ),
    )


def _oauth_app(settings: Settings) -> "OAuthApp | None":
    from botservice.storage.encryption import Cipher
    from transports.slack.installing import OAuthApp

    client_id, secret = settings.slack_client_id, reveal(settings.slack_client_secret)
    key = reveal(settings.encryption_key)
    if client_id is None and secret is None:
        return None
    if client_id is None or secret is None or key is None:
        raise SettingsError(
            "other workspaces can install the bot when SLACK_CLIENT_ID, SLACK_CLIENT_SECRET and ENCRYPTION_KEY are all "
            "set: the tokens that they give are stored encrypted"
        )
    return OAuthApp(client_id, secret, Cipher(key), settings.public_url)
