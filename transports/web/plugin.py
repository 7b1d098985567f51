"""The pages in the browser, with those that belong to no chat: figures, and the return from signing in to a tool."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.routing import BaseRoute

from botservice.app import Application
from botservice.config.settings import Settings, reveal
from botservice.core.check_result import Finding
from botservice.core.loopback import is_loopback
from botservice.core.policies import WebAccess
from botservice.service import AgentService
from botservice.telemetry.metrics import Metrics
from botservice.transport_plugins import TransportPlugin, TransportSetup, load_plugins
from botservice.turns.transport import Transport
from transports.common.documents import build_reading
from transports.web.metrics_page import metrics_route
from transports.web.owner_token import PageAccess
from transports.web.sign_in_page import sign_in_routes

if TYPE_CHECKING:
    from botservice.devtools.replaying import Replayer


class WebPlugin(TransportPlugin):
    """Always on: who may open the pages is up to ADMIN_TOKEN and WEB_ACCESS."""

    name = "web"
    label = "browser"
    off = "off"

    def build(self, setup: TransportSetup) -> Iterable[Transport]:
        """Return the transport."""
        from transports.web.app import WebTransport

        yield WebTransport(
            access=PageAccess.of(setup.settings),
            reading=setup.shared(build_reading),
            commands=setup.commands,
            service=setup.service,
            asker=None if setup.service is None else partial(_make_asker, setup.service, setup.settings),
            bot_name=setup.bot_name,
        )

    async def check(self, settings: Settings) -> Finding:
        """Return who may open the pages."""
        token = reveal(settings.admin_token)
        if settings.web_access is WebAccess.LINK:
            return _check_links(settings)
        if token is None and (settings.public_url is not None or not is_loopback(settings.host)):
            return Finding("browser", "off: others can reach this address; ADMIN_TOKEN opens the pages", is_off=True)
        said = "the pages ask for ADMIN_TOKEN" if token else "the pages are open to this machine alone"
        return Finding("browser", said)

    def routes(self, application: Application, metrics: Metrics | None) -> Sequence[BaseRoute]:
        """Return the page of figures, and the one to which people return from servers of tools."""
        signing = sign_in_routes(application)
        return signing if metrics is None else [*signing, metrics_route(application, metrics)]


def _make_asker(service: AgentService, settings: Settings) -> "Replayer":
    from botservice.devtools.replaying import Replayer

    return Replayer(service, settings)


def _check_links(settings: Settings) -> Finding:
    """Return whether people can get into the pages by links."""
    missing = [] if settings.public_url is not None else ["PUBLIC_URL, where the links lead"]
    if not any(plugin.is_public(settings) for plugin in load_plugins()):
        missing.append("TELEGRAM_BOT_TOKEN or SLACK_BOT_TOKEN, by which people ask for them")
    if missing:
        return Finding("browser", f"WEB_ACCESS=link needs {' and '.join(missing)}", is_wrong=True)
    owner = "ADMIN_TOKEN opens everything" if settings.admin_token else "the inspector is off: ADMIN_TOKEN opens it"
    return Finding("browser", f"people come in by links that /web gives them; {owner}")


PLUGIN: Final = WebPlugin()
