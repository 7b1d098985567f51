"""Discord for every service of an environment that has this folder installed: `pip install .`, and three variables."""

import os
from collections.abc import Iterable

from transport import API_URL, DiscordTransport

from botservice import Settings, SettingsError, Transport, TransportPlugin, TransportSetup


class DiscordPlugin(TransportPlugin):
    """Turned on by DISCORD_BOT_TOKEN."""

    name = "discord"
    off = "off: DISCORD_BOT_TOKEN turns it on"

    def build(self, setup: TransportSetup) -> Iterable[Transport]:
        """Return the transport if there is a token."""
        return [build_discord()] if self.is_public(setup.settings) else []

    def is_public(self, settings: Settings) -> bool:
        """Return whether there is a token."""
        return "DISCORD_BOT_TOKEN" in os.environ


def build_discord() -> DiscordTransport:
    """Return the transport that the environment describes."""
    names = ("DISCORD_APPLICATION_ID", "DISCORD_PUBLIC_KEY", "DISCORD_BOT_TOKEN")
    if missing := [name for name in names if not os.environ.get(name)]:
        raise SettingsError(f"Discord needs {', '.join(missing)}: they are in its developer portal")
    application_id, public_key, token = (os.environ[name] for name in names)
    api_url = os.environ.get("DISCORD_API_URL", API_URL)
    return DiscordTransport(application_id=application_id, public_key=public_key, token=token, api_url=api_url)
