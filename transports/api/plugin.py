"""The routes for programs: they are there in every process that serves the web."""

from collections.abc import Iterable, Sequence
from typing import Final

from starlette.routing import BaseRoute

from botservice.app import Application
from botservice.telemetry.metrics import Metrics
from botservice.transport_plugins import TransportPlugin, TransportSetup
from botservice.turns.transport import Transport


class ApiPlugin(TransportPlugin):
    """Turned on by API_TOKEN and by hooks.json; people do not write by it."""

    name = "api"

    def build(self, setup: TransportSetup) -> Iterable[Transport]:  # noqa: ARG002 - others need it
        """Return no transport: what comes in goes to a chat of another one."""
        return ()

    def routes(self, application: Application, metrics: Metrics | None) -> Sequence[BaseRoute]:  # noqa: ARG002 - others need it
        """Return the routes."""
        from transports.api.sending import send_route

        return [send_route(application)]


PLUGIN: Final = ApiPlugin()
