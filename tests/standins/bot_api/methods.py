"""The table of methods. A method runs under the lock, in one go: it checks everything, then takes effect."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from standins.bot_api.calls import Call
from standins.bot_api.chats import World
from standins.bot_api.entities import Strictness
from standins.bot_api.updates import Updates
from standins.bot_api.webhooks import Webhooks


@dataclass(frozen=True, slots=True)
class Described:
    """A result with a description next to it, as the webhook methods give."""

    result: Any
    description: str


class Bench(Protocol):
    """What methods work on."""

    world: World
    updates: Updates
    webhooks: Webhooks
    strict: Strictness
    commands: dict[tuple[str, str], list[dict[str, str]]]
    callback_answers: dict[str, dict[str, Any] | None]
    names: dict[str, str]
    abilities: dict[str, bool]
    privacy_mode: bool
    guest_queries: dict[str, Any]


Method = Callable[[Bench, Call], Any]


@dataclass(slots=True)
class Table:
    methods: dict[str, Method] = field(default_factory=dict)

    def __call__(self, *names: str) -> Callable[[Method], Method]:
        """Register a method under its names; the Bot API does not mind upper and lower case."""

        def register(method: Method) -> Method:
            for name in names:
                self.methods[name.lower()] = method
            return method

        return register


method = Table()
