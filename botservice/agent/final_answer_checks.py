"""What the user wants to see of an answer before anybody else sees it."""

import asyncio
import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter
from typing import Any, Final, TypeAlias

from botservice.conversation.agent_memory import AgentMemory
from botservice.conversation.field_values import StepError
from botservice.core.errors import InvalidField
from botservice.core.threads import run_in_thread
from botservice.telemetry.logs import redact

FinalAnswerCheck: TypeAlias = Callable[..., Any]
"""Takes `(answer)`, `(answer, memory)` or `(answer, memory, agent)`; sync, then in a thread, or async.

An answer fails where it returns False, or a text that says why, or raises.
"""

CHECK_FAILED: Final = "FinalAnswerCheckError"
_TIMEOUT_SECONDS: Final = 60.0
_BY_POSITION: Final = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_REFUSED: Final = "Nobody has seen this answer, because it does not pass a check. {reason}\nFix it, and answer again."

logger = logging.getLogger(__name__)


def checked_checks(checks: Iterable[FinalAnswerCheck]) -> tuple[FinalAnswerCheck, ...]:
    """Return checks.

    Raises:
        InvalidField: one of them cannot be called with an answer.
    """
    given = tuple(checks)
    for check in given:
        if not callable(check):
            raise InvalidField(f"final_answer_checks: a {type(check).__name__} is not callable")
        _arguments(check, "", AgentMemory(), None)
    return given


async def find_refusal(
    checks: Sequence[FinalAnswerCheck], answer: Any, memory: AgentMemory, agent: object
) -> str | None:
    """Return what the model is told of an answer that fails a check; None for one that passes all of them.

    Args:
        agent: What a check is given as agent: it has `.memory` and `.context`.
    """
    for check in checks:
        reason = await _find_reason(check, answer, memory, agent)
        if reason is not None:
            logger.info("final_answer.refused", extra={"check": _name(check)})
            return _REFUSED.format(reason=f"Check {_name(check)} failed{': ' if reason else ''}{redact(reason)}.")
    return None


async def _find_reason(check: FinalAnswerCheck, answer: Any, memory: AgentMemory, agent: object) -> str | None:
    limit = asyncio.timeout(_TIMEOUT_SECONDS)
    try:
        async with limit:
            found = await _call(check, answer, memory, agent)
    except Exception as error:  # noqa: BLE001 - foreign code enters here
        if isinstance(error, TimeoutError) and limit.expired():
            return f"it did not end within {_TIMEOUT_SECONDS:g} seconds"
        return str(StepError.of(error))
    if isinstance(found, str):
        return found or None
    return None if found is None or found else ""


async def _call(check: FinalAnswerCheck, answer: Any, memory: AgentMemory, agent: object) -> Any:
    arguments, named = _arguments(check, answer, memory, agent)
    if inspect.iscoroutinefunction(check):
        return await check(*arguments, **named)
    found = await run_in_thread(lambda: check(*arguments, **named), name=f"check-{_name(check)}")
    return await found if inspect.isawaitable(found) else found


def _arguments(
    check: FinalAnswerCheck, answer: Any, memory: AgentMemory, agent: object
) -> tuple[list[Any], Mapping[str, Any]]:
    """Return as much as a check takes.

    Raises:
        InvalidField: it takes no answer, or more than there is.
    """
    try:
        signature = inspect.signature(check)
    except (TypeError, ValueError):  # some builtins have none
        return [answer], {}
    parameters = signature.parameters.values()
    places = [each for each in parameters if each.kind in _BY_POSITION]
    is_open = any(each.kind is Parameter.VAR_POSITIONAL for each in parameters)
    second = agent if len(places) > 1 and places[1].name == "agent" else memory
    given = [answer, second, agent][: 3 if is_open else max(1, len(places))]
    named = {"agent": agent} if any(_is_named_agent(each) for each in parameters) else {}
    try:
        signature.bind(*given, **named)
    except TypeError as error:
        forms = "(answer), (answer, memory) or (answer, memory, agent)"
        raise InvalidField(f"final_answer_checks: {_name(check)} must take {forms}: {error}") from error
    return given, named


def _is_named_agent(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.KEYWORD_ONLY and parameter.name == "agent"


def _name(check: FinalAnswerCheck) -> str:
    return str(getattr(check, "__name__", type(check).__name__))
