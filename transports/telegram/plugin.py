"""Telegram, for a service that has a token."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from botservice.commands.command import Command
from botservice.config.setting_choices import GroupAnswers
from botservice.config.settings import Settings, reveal
from botservice.core.check_result import Finding
from botservice.transport_plugins import TransportPlugin, TransportSetup
from botservice.turns.transport import Transport
from transports.common.documents import build_reading

if TYPE_CHECKING:
    from transports.common.documents import DocumentReaders
    from transports.telegram.app import TelegramTransport


class TelegramPlugin(TransportPlugin):
    """Turned on by TELEGRAM_BOT_TOKEN."""

    name = "telegram"
    off = "off: TELEGRAM_BOT_TOKEN turns it on"

    def build(self, setup: TransportSetup) -> Iterable[Transport]:
        """Return the transport if there is a token."""
        if self.is_public(setup.settings):
            yield build_telegram(setup.settings, setup.shared(build_reading), setup.commands)

    def is_public(self, settings: Settings) -> bool:
        """Return whether there is a token."""
        return settings.telegram_bot_token is not None

    async def check(self, settings: Settings) -> Finding:
        """Return who the bot is, as Telegram says."""
        token = reveal(settings.telegram_bot_token)
        if token is None:
            return Finding(self.name, f"{self.off}; @BotFather gives you one", is_off=True)
        from transports.telegram.check import check_bot

        listens = settings.group_answers is GroupAnswers.LISTENING
        said = await check_bot(token, settings.telegram_api_url, settings.public_url, listens=listens)
        return Finding(self.name, said)


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


PLUGIN: Final = TelegramPlugin()
