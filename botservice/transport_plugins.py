"""The transports of a service: those that are built in, and those that other packages bring by entry points."""

import functools
import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Any, Final, TypeVar

from botservice.core.argument_checks import adopt
from botservice.core.errors import BotServiceError, SettingsError

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

    from botservice.app import Application
    from botservice.commands.command import Command
    from botservice.config.settings import Settings
    from botservice.core.check_result import Finding
    from botservice.service import AgentService
    from botservice.telemetry.metrics import Metrics
    from botservice.turns.transport import Transport

T = TypeVar("T")
GROUP: Final = "botservice.transports"
"""The group of entry points by which packages bring transports; each names a `TransportPlugin`."""

TERMINAL: Final = "transports.terminal.plugin:PLUGIN"
BUILT_IN: Final = (
    *("transports.web.plugin:PLUGIN", "transports.telegram.plugin:PLUGIN", "transports.slack.plugin:PLUGIN", TERMINAL),
    "transports.api.plugin:PLUGIN",
)


class TransportSetup:
    """What transports are built from.

    Attributes:
        service: The service that they belong to; None where none is served, such as in a test.
    """

    def __init__(self, settings: "Settings", service: "AgentService | None" = None) -> None:
        self.settings = settings
        self.service = service
        self._shared: dict[Callable[[Settings], Any], Any] = {}

    @property
    def commands(self) -> "Sequence[Command] | None":
        """The commands of chats: those that menus show, and those that are typed alone."""
        if self.service is None:
            return None
        offered = self.service.commands.offered(self.service.agent.tools)
        return [each for each in self.service.commands if each in offered or not each.is_listed]

    @property
    def bot_name(self) -> str | None:
        """What the bot is called."""
        return (None if self.service is None else self.service.name) or self.settings.bot_name

    def shared(self, make: "Callable[[Settings], T]") -> T:
        """Return what make makes of the settings: once for all transports that are built together."""
        if make not in self._shared:
            self._shared[make] = make(self.settings)
        found: T = self._shared[make]
        return found


class TransportPlugin(ABC):
    """What a package offers so that a service is reached in one more way.

    `name` and `build` are needed. An object or a module that has them is taken as well.

    Attributes:
        name: What its transports are called: it stands in context keys, and before the ids of people.
        label: What it is called at the start and by `botservice doctor`; by default its name.
        off: What the start says where it is off, such as how to turn it on; None for nothing.
    """

    name: str
    label: str = ""
    off: str | None = None

    @abstractmethod
    def build(self, setup: TransportSetup) -> "Iterable[Transport]":
        """Return the transports that the settings, or the environment, turn on; none if it is off.

        Raises:
            SettingsError: something that it needs is missing or wrong.
        """

    def is_public(self, settings: "Settings") -> bool:  # noqa: ARG002 - others need it
        """Return whether people can write to the bot by it without being let into a page or a machine."""
        return False

    async def check(self, settings: "Settings") -> "Finding | None":  # noqa: ARG002 - others need it
        """Try it for `botservice doctor`; None if there is nothing to say.

        Raises:
            BotServiceError: something is wrong; the message says what to do.
        """
        return None

    def routes(self, application: "Application", metrics: "Metrics | None") -> "Sequence[BaseRoute]":  # noqa: ARG002 - others need it
        """Return what it answers on the web server of every process, workers' too, whether it is on or off.

        Args:
            metrics: What the process counts.
        """
        return ()

    async def chat(
        self, settings: "Settings", make_service: "Callable[[], AgentService]", session: str, *, has_history: bool
    ) -> bool:
        """Talk to a service here, as `botservice chat` does, until the input ends; return whether that was Ctrl+C.

        Args:
            make_service: Loads the service, if none runs already.
            has_history: Whether what is typed is kept for the arrow keys.
        """
        raise NotImplementedError


def platform_labels() -> dict[str, str]:
    """Return what people call each platform, by the name of its transport."""
    from botservice.turns.transport import NoTransport

    labels = {plugin.name: (plugin.label or plugin.name).capitalize() for plugin in load_plugins()}
    return labels | {NoTransport.name: NoTransport.capabilities.label}


def platform_label(name: str) -> str:
    """Return what people call a platform; it may be one that is not there any more."""
    return platform_labels().get(name, name.capitalize())


def load_plugin(path: str) -> TransportPlugin:
    """Return the plugin at `module:attribute`."""
    module, _, attribute = path.partition(":")
    return adopt(TransportPlugin, getattr(importlib.import_module(module), attribute))


@functools.cache
def load_plugins() -> tuple[TransportPlugin, ...]:
    """Return the plugins that are built in, then those of other packages.

    Raises:
        SettingsError: one of another package cannot be loaded.
    """
    return (*map(load_plugin, BUILT_IN), *map(_load_foreign, sorted(entry_points(group=GROUP), key=lambda x: x.name)))


def _load_foreign(entry: EntryPoint) -> TransportPlugin:
    try:
        found = entry.load()
        given = found() if isinstance(found, type) else found
        return adopt(TransportPlugin, given, "it", remedy="give a TransportPlugin")
    except Exception as error:  # a border: it is foreign code
        package = entry.dist.name if entry.dist else "another package"
        why = f"{type(error).__name__}: {error}"
        raise SettingsError(f"{package}: its transport {entry.value} cannot be loaded ({why})") from error


def _build(plugin: TransportPlugin, setup: TransportSetup) -> "list[Transport]":
    try:
        return list(plugin.build(setup))
    except BotServiceError:
        raise
    except Exception as error:  # a border: it may be foreign code
        raise SettingsError(f"the transport {plugin.name} cannot be built: {type(error).__name__}: {error}") from error


def build_transports(settings: "Settings", service: "AgentService | None" = None) -> "list[Transport]":
    """Return the transports that have what they need, and those that the service brings itself.

    Raises:
        SettingsError: one cannot be built, or two have one name.
    """
    from botservice.commands.links import web_command
    from botservice.core.policies import WebAccess

    if service is not None and settings.web_access is WebAccess.LINK:
        service.commands.add(web_command(settings.public_url))
    setup = TransportSetup(settings, service)
    found = [each for plugin in load_plugins() for each in _build(plugin, setup)]
    found += () if service is None else service.transports
    names = [transport.name for transport in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise SettingsError(f"two transports are called {', '.join(sorted(twice))}: give yours another name")
    return found
