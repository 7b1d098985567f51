"""Step callbacks: functions that are called with every step, the user's and a ready-made one."""

import functools
import inspect
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from inspect import Parameter
from typing import Any, Final, Protocol, TypeAlias

from botservice.conversation.agent_memory import AgentMemory
from botservice.conversation.field_values import CallbackFailure
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import ActionStep
from botservice.core.errors import InvalidField

Callback: TypeAlias = Callable[..., Any]
"""Takes `(step)` or `(step, agent)`; sync or async; what it returns is not looked at."""

_POSITIONAL: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)

_log = logging.getLogger(__name__)


class StepCallbacks:
    """Calls what the user registered for a step's class, and survives it.

    Attributes:
        groups: The callbacks by class; those of one group are called before those of the next.

    Args:
        callbacks: A list, for every `ActionStep`; or a dict from class to callable or list of callables, for every
            step of that class or one below it, where the most specific class comes first.

    Raises:
        InvalidField: something in callbacks is not a step class or not callable with `(step)` or `(step, agent)`.
    """

    def __init__(
        self,
        callbacks: Iterable[Callback]
        | Callback
        | Mapping[type[MemoryItem], Callback | Iterable[Callback]]
        | None = None,
    ) -> None:
        by_class = callbacks if isinstance(callbacks, Mapping) else {ActionStep: callbacks or ()}
        bound = {_checked_class(cls): [_bind(one) for one in _listed(given)] for cls, given in by_class.items()}
        self.groups: Sequence[dict[type[MemoryItem], list[_Bound]]] = [bound]

    @property
    def is_empty(self) -> bool:
        """Whether nothing was registered."""
        return not any(map(any, map(dict.values, self.groups)))

    def followed_by(self, others: "StepCallbacks") -> "StepCallbacks":
        """Combine these callbacks with others, which are called after all of these."""
        both = StepCallbacks()
        both.groups = [*self.groups, *others.groups]
        return both

    def are_for(self, step: MemoryItem) -> bool:
        """Return whether there is a callback for steps of this class."""
        return next(self._matching(step), None) is not None

    async def run(self, step: MemoryItem, agent: object) -> list[CallbackFailure]:
        """Call every callback of the step, one after the other, and return the failures.

        A callback that raises is logged and does not keep the next ones from being called. A cancellation passes.
        """
        failures = []
        for name, call in self._matching(step):
            try:
                result = call(step, agent)
                if inspect.isawaitable(result):
                    await result
            except Exception as error:  # noqa: BLE001 - foreign code enters here
                _log.exception("step_callback_failed", extra={"callback": name, "step_class": type(step).__name__})
                failures.append(CallbackFailure.of(name, error))
        return failures

    def _matching(self, step: MemoryItem) -> "Iterator[_Bound]":
        classes = type(step).__mro__
        return (bound for group in self.groups for cls in classes for bound in group.get(cls, ()))


class HasMemory(Protocol):
    """What a step callback is given as `agent`."""

    @property
    def memory(self) -> AgentMemory:
        """The steps."""


class ShowSteps:
    """A step callback that prints each step on standard error as soon as it is stored.

    It prints what the model and people said; logs hold ids and no texts.

    Args:
        detailed: Show everything in full, including the model's input.
    """

    def __init__(self, *, detailed: bool = False) -> None:
        self.detailed = detailed

    def __call__(self, step: MemoryItem) -> None:
        """Print a step."""
        from rich.console import Console

        from botservice.conversation.replay import render_steps, show

        show(render_steps([step], detailed=self.detailed), Console(stderr=True))


class ForgetOldImages:
    """A step callback that removes images from all but the newest steps that have some.

    The model no longer sees them. The `model_input_messages` of earlier steps keep them.

    Args:
        keep: How many steps keep their images.

    Raises:
        ValueError: keep is negative.
    """

    def __init__(self, keep: int = 2) -> None:
        if keep < 0:
            raise ValueError(f"keep must be 0 or more, not {keep}")
        self.keep = keep

    def __call__(self, step: MemoryItem, agent: HasMemory) -> None:  # noqa: ARG002 - what callbacks are given
        """Forget the images of older steps."""
        kept = 0
        for item in reversed(agent.memory.steps):
            if item is None or not item.get_value("observations_images"):
                continue
            kept += 1
            if kept > self.keep:
                item.set_value("observations_images", None)


forget_old_images = ForgetOldImages()
"""Keeps the images of the newest two steps: `step_callbacks=[forget_old_images]`."""


_Bound: TypeAlias = tuple[str, Callable[[MemoryItem, object], Any]]


def _checked_class(cls: object) -> type[MemoryItem]:
    if not isinstance(cls, type) or not issubclass(cls, MemoryItem):
        raise InvalidField(f"step_callbacks: {cls!r} is not a step class; use one such as ActionStep as the key")
    return cls


def _listed(given: Iterable[Callback] | Callback) -> Iterable[Callback]:
    if callable(given):
        return [given]
    if isinstance(given, str | Mapping) or not isinstance(given, Iterable):
        raise InvalidField(f"step_callbacks: a {type(given).__name__} is neither callable nor a list of callables")
    return given


def _bind(callback: Callback) -> _Bound:
    """Return a callback with its name, callable as (step, agent) whatever it takes."""
    if not callable(callback):
        raise InvalidField(f"step_callbacks: a {type(callback).__name__} is not callable")
    named = callback.func if isinstance(callback, functools.partial) else callback
    name = str(getattr(named, "__qualname__", type(named).__qualname__))
    return name, _adapted(callback, name)


def _adapted(callback: Callback, name: str) -> Callable[[MemoryItem, object], Any]:
    try:
        parameters = list(inspect.signature(callback).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature
        return lambda step, _: callback(step)
    has_agent = isinstance(callback, functools.partial) and "agent" in callback.keywords
    if not has_agent and _takes_two(parameters):
        _check_call(parameters, 2, name)
        return callback
    if not has_agent and any(p.name == "agent" and p.kind is Parameter.KEYWORD_ONLY for p in parameters):
        _check_call(parameters, 1, name)
        return lambda step, agent: callback(step, agent=agent)
    _check_call(parameters, 1, name)
    return lambda step, _: callback(step)


def _takes_two(parameters: list[Parameter]) -> bool:
    """Whether the second place is the agent's: a default means something else, unless it is called agent."""
    positional = [p for p in parameters if p.kind in _POSITIONAL]
    if len(positional) > 1:
        return positional[1].default is Parameter.empty or positional[1].name == "agent"
    return any(p.kind is Parameter.VAR_POSITIONAL for p in parameters)


def _check_call(parameters: list[Parameter], count: int, name: str) -> None:
    named = {p.name: None for p in parameters if p.name == "agent" and p.kind is Parameter.KEYWORD_ONLY}
    try:
        inspect.Signature(parameters).bind(*range(count), **named)
    except TypeError as error:
        raise InvalidField(f"step_callbacks: {name} must take (step) or (step, agent): {error}") from error
