"""Slack, for a service that has a workspace, or an app that workspaces install."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from botservice.config.setting_choices import GroupAnswers, SlackListen
from botservice.config.settings import Settings, reveal
from botservice.core.check_result import Finding
from botservice.core.errors import SettingsError
from botservice.transport_plugins import TransportPlugin, TransportSetup
from botservice.turns.transport import Transport
from transports.common.documents import build_reading

if TYPE_CHECKING:
    from transports.common.documents import DocumentReaders
    from transports.slack.app import SlackTransport
    from transports.slack.installing import OAuthApp


_DEAF: Final = "; GROUP_ANSWERS is listening, but nothing of channels is read: set SLACK_LISTEN=channels"


class SlackPlugin(TransportPlugin):
    """Turned on by SLACK_BOT_TOKEN or SLACK_CLIENT_ID."""

    name = "slack"
    off = "off: SLACK_BOT_TOKEN turns it on"

    def build(self, setup: TransportSetup) -> Iterable[Transport]:
        """Return the transport if there is a workspace, or a way for workspaces to come."""
        if self.is_public(setup.settings):
            service = setup.service
            tools = tuple if service is None else lambda: list(service.agent.tools)
            yield build_slack(setup.settings, setup.shared(build_reading), tools)

    def is_public(self, settings: Settings) -> bool:
        """Return whether there is a workspace to speak in, or a way for workspaces to come."""
        return settings.slack_bot_token is not None or settings.slack_client_id is not None

    async def check(self, settings: Settings) -> Finding:
        """Return who the bot is, as Slack says."""
        if not self.is_public(settings):
            is_left_over = bool(settings.slack_app_token or settings.slack_signing_secret)
            text = f"{self.off}; docs/slack.md leads there in five minutes"
            return Finding(self.name, text, is_off=True, is_wrong=is_left_over)
        from transports.slack.check import check_slack

        build_slack(settings)  # says what installations need
        found = await check_slack(
            api_url=settings.slack_api_url,
            token=reveal(settings.slack_bot_token),
            signing_secret=reveal(settings.slack_signing_secret),
            app_token=reveal(settings.slack_app_token),
            public_url=settings.public_url,
            is_installable=settings.slack_client_id is not None,
        )
        is_deaf = settings.group_answers is GroupAnswers.LISTENING and settings.slack_listen is SlackListen.THREADS
        return Finding(self.name, found + _DEAF if is_deaf else found, is_wrong=is_deaf)


def build_slack(
    settings: Settings, reading: "DocumentReaders | None" = None, tools: Callable[[], Sequence[str]] = tuple
) -> "SlackTransport":
    """Return the transport of Slack.

    Raises:
        SettingsError: what installations need is not all there.
    """
    from transports.slack.app import SlackTransport
    from transports.slack.context import Manners

    return SlackTransport(
        token=reveal(settings.slack_bot_token),
        signing_secret=reveal(settings.slack_signing_secret),
        app_token=reveal(settings.slack_app_token),
        api_url=settings.slack_api_url,
        oauth=_oauth_app(settings),
        manners=Manners(
            listening=settings.slack_listen,
            pings=settings.slack_pings,
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


PLUGIN: Final = SlackPlugin()
