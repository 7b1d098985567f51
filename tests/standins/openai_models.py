"""What OpenAI's models want, each family by its own rules."""

import re
from dataclasses import dataclass
from typing import Any

from standins.openai_refusals import refuse

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
RETIRED = re.compile(r"(gpt-3|gpt-4-|gpt-4\.5|chatgpt-4o|o1-(preview|mini)|text-davinci)")
_VERSION = re.compile(r"gpt-(\d+)(?:\.(\d+))?(?:-([a-z]+))?")


@dataclass(frozen=True, slots=True)
class Rules:
    """What a model takes.

    Attributes:
        reasons: Whether it thinks before it answers.
        may_not_reason: Whether it knows the effort none.
        tools_by_chat: The efforts with which chat.completions takes function tools; None: unset.
        keeps_marks: Whether it takes cache breakpoints.
    """

    reasons: bool
    may_not_reason: bool = True
    tools_by_chat: frozenset[str | None] = frozenset([*EFFORTS, None])
    keeps_marks: bool = False


def rules_of(model: str) -> Rules:
    """Return the rules of a model; one that is not OpenAI's takes everything, and does not think."""
    found = _VERSION.match(model)
    if found is None:
        return Rules(reasons=bool(re.match(r"o\d", model)))
    version = int(found[1]), int(found[2] or 0)
    if version < (5, 0):
        return Rules(reasons=False)
    if version < (5, 4):
        return Rules(reasons=True)
    if version < (5, 6):
        return Rules(reasons=True, tools_by_chat=frozenset(["none", None]))
    always = version >= (6, 2) or (version, found[3]) in {((6, 0), "astra"), ((6, 1), "sol")}
    return Rules(True, not always, frozenset() if always else frozenset(["none"]), keeps_marks=True)


def check_retired(model: str) -> None:
    """Check that a model is still there."""
    if RETIRED.match(model):
        message = f"The model `{model}` has been deprecated, learn more here: https://openai.com/deprecations"
        raise refuse(message, code="model_not_found", status=404)


def check_effort(model: str, effort: Any, param: str) -> None:
    """Check a reasoning effort."""
    if effort is None:
        return
    rules = rules_of(model)
    if not rules.reasons:
        message = f"Unsupported parameter: '{param}' is not supported with this model."
        raise refuse(message, param=param, code="unsupported_parameter")
    known = EFFORTS if rules.may_not_reason else EFFORTS[2:]
    if effort not in known:
        allowed = ", ".join(f"'{name}'" for name in known[:-1])
        raise refuse(
            f"Unsupported value: '{effort}' is not supported with the '{model}' model. Supported values are: "
            f"{allowed}, and '{known[-1]}'.",
            param=param,
            code="unsupported_value",
        )


def check_tools_by_chat(body: dict[str, Any]) -> None:
    """Check whether a model takes tools by chat.completions."""
    model, effort = body["model"], body.get("reasoning_effort")
    if body.get("tools") and effort not in rules_of(model).tools_by_chat:
        raise refuse(
            f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions. To use "
            "function tools, use /v1/responses or set reasoning_effort to 'none'.",
            param="reasoning_effort",
        )
