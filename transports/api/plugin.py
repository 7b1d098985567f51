"""The routes for programs: they are there in every process that serves the web."""

from collections.abc import Iterable, Sequence
from typing import Final

from starlette.routing import BaseRoute

from botservice.app import Application
from botservice.config.settings import Settings
from botservice.core.check_result import Finding
from botservice.core.errors import SettingsError
from botservice.telemetry.metrics import Metrics
from botservice.transport_plugins import TransportPlugin, TransportSetup
from botservice.turns.transport import Transport


class ApiPlugin(TransportPlugin):
    """Turned on by API_TOKEN and by hooks.json; people do not write by it."""

    name = "api"
    label = "hooks"

    def build(self, setup: TransportSetup) -> Iterable[Transport]:
        """Return no transport: what comes in goes to a chat of another one. Hooks are read, so that errors come early.

        Raises:
            SettingsError: hooks.json says something wrong, or names a tool that there is not.
        """
        from transports.api.hooks_file import read_hooks

        agent = None if setup.service is None else setup.service.agent
        for hook in read_hooks(setup.settings.hooks_file).values():
            missing = (
                [] if agent is None or agent.toolsets else [name for name in hook.tools if name not in agent.tools]
            )
            if missing and agent is not None:
                raise SettingsError(
                    f"{setup.settings.hooks_file}: hook {hook.name!r}: there is no tool {missing[0]!r:.80}; there are: "
                    f"{', '.join(agent.tools) or 'none'}"
                )
        return ()

    async def check(self, settings: Settings) -> Finding | None:
        """Return which hooks there are."""
        from transports.api.hooks_file import read_hooks

        hooks = read_hooks(settings.hooks_file)
        if not hooks:
            return None
        address = (settings.public_url or f"http://{settings.host}:{settings.port}").rstrip("/")
        said = ", ".join(f"{each.name} ({each.sender.kind} → {each.to_name}, {each.do})" for each in hooks.values())
        return Finding(self.label, f"{said}; at {address}/hooks/NAME")

    def routes(self, application: Application, metrics: Metrics | None) -> Sequence[BaseRoute]:  # noqa: ARG002 - others need it
        """Return the routes."""
        from transports.api.hooks import hook_routes
        from transports.api.openai_routes import ModelEndpoint
        from transports.api.sending import send_route

        return [send_route(application), *hook_routes(application), *ModelEndpoint(application).routes()]


PLUGIN: Final = ApiPlugin()
