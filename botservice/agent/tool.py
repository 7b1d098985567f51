"""Functions that a model may call."""

import hashlib
import inspect
import json
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, overload

import docstring_parser

from botservice.agent.tool_signature import Signature
from botservice.conversation.context import AgentContext
from botservice.core.errors import InvalidTool
from botservice.core.policies import read_roles

ToolFunction = Callable[..., Any]
NeedsApproval = bool | Callable[[dict[str, Any], AgentContext], Any]
"""Whether a person is asked before a call is made: always, never, or as this, async or not, says of its arguments.

It gets them as the tool's function does, with the defaults; where their JSON values differ, or what the model gave, it
is asked with these as well.
"""

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # OpenAI API reference, function.name
DEFAULT_TIMEOUT_SECONDS = 60.0


class Tool:
    """A function that a model can call: name, description and schema come from its signature and docstring.

    A parameter annotated with `AgentContext` receives the context of the call and is not in the schema. A function
    that is not async runs in a thread.

    Attributes:
        name: The name for the model.
        description: The description for the model.
        schema: The definition for the model, in the format of chat.completions.
        is_final: Whether its output is the answer, unchanged.
        idempotent: Whether an interrupted call may run again.
        timeout_seconds: The time limit of a call.
        max_calls: The most calls for one prompt; None for no limit.
        needs_approval: Whether a person has to approve each call, or a callable that decides; one that fails means yes.
        reads_untrusted: Whether its results may contain words of strangers, such as pages or mails. Afterwards, tools
            that a person always allows ask again.
        roles: The roles of people for whom it may run; None for everybody.
        shows_files: Whether its files are sent with the answer, and not only to the model.
    """

    shows_files = True

    def __init__(  # noqa: PLR0913 - what one may say of a tool
        self,
        function: ToolFunction,
        *,
        name: str | None = None,
        description: str | None = None,
        is_final: bool = False,
        idempotent: bool = False,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
        max_calls: int | None = None,
        needs_approval: NeedsApproval = False,
        reads_untrusted: bool = False,
        roles: Iterable[str] | None = None,
    ) -> None:
        """Wrap function.

        Raises:
            InvalidTool: the name cannot be sent to a model, the signature has no schema, or a number is out of range.
        """
        self._function = function
        self.name = str(name or getattr(function, "__name__", ""))
        if not _NAME.fullmatch(self.name):
            raise InvalidTool(f"a tool's name is 1 to 64 letters, digits, _ or -, not {self.name!r}: pass name=")
        if not 0 < timeout_seconds < math.inf:
            raise InvalidTool(f"timeout_seconds of {self.name} must be a number above 0, not {timeout_seconds}")
        if max_calls is not None and max_calls < 1:
            raise InvalidTool(f"max_calls of {self.name} must be 1 or more, or None, not {max_calls}")
        if not isinstance(needs_approval, bool) and not callable(needs_approval):
            raise InvalidTool(f"needs_approval of {self.name} must be True, False or callable, not {needs_approval!r}")
        self.roles = None if roles is None else read_roles(roles)
        if roles is not None and self.roles is None:
            raise InvalidTool(
                f'roles of {self.name} must be a list of names such as ["owner", "member"], not {roles!r}'
            )
        documented, parameters = _read_docstring(inspect.getdoc(function) or "")
        self.description = description or documented
        self.is_final = is_final
        self.idempotent = idempotent
        self.timeout_seconds = timeout_seconds
        self.max_calls = max_calls
        self.needs_approval = needs_approval
        self.reads_untrusted = reads_untrusted
        self._signature = Signature(function, self.name, parameters)
        self.schema: Mapping[str, Any] = {
            "type": "function",
            "function": {"name": self.name, "description": self.description, "parameters": self._signature.schema},
        }

    def __repr__(self) -> str:
        return f"Tool({self.name})"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function itself."""
        return self._function(*arguments, **named)

    @property
    def digest(self) -> str:
        """A digest of its definition, which distinguishes two tools of one name."""
        return hashlib.sha256(json.dumps(self.schema, sort_keys=True, default=str).encode()).hexdigest()

    @property
    def is_async(self) -> bool:
        """Whether the function runs on the event loop."""
        return inspect.iscoroutinefunction(self._function)

    @property
    def takes_context(self) -> bool:
        """Whether a call receives the context, and with it access to what is known about people."""
        return self._signature.takes_context

    def read_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Validate a model's arguments and add defaults.

        Raises:
            ArgumentsError: the arguments do not fit.
        """
        return self._signature.read(arguments)

    def bind(self, arguments: Mapping[str, Any], context: AgentContext) -> Callable[[], Awaitable[Any] | Any]:
        """Prepare a call of the function with a model's arguments.

        Raises:
            ArgumentsError: the arguments do not fit.
        """
        values = self._signature.bind(arguments, context)
        return lambda: self._function(**values)

    async def give_up(self, kept: Mapping[str, Any]) -> None:
        """End what a call has begun elsewhere, because nobody waits for its result any more.

        Args:
            kept: What the call kept.
        """


@overload
def tool(function: ToolFunction, /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    is_final: bool = False,
    idempotent: bool = False,
    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    max_calls: int | None = None,
    needs_approval: NeedsApproval = False,
    reads_untrusted: bool = False,
    roles: Iterable[str] | None = None,
) -> Callable[[ToolFunction], Tool]: ...
def tool(function: ToolFunction | None = None, /, **options: Any) -> Tool | Callable[[ToolFunction], Tool]:
    """Turn a function into a tool: `@tool`, or `@tool(name=…, is_final=…)` with the options of `Tool`."""
    if function is not None:
        return Tool(function, **options)
    return lambda decorated: Tool(decorated, **options)


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """Return the description in a docstring, and what it says of each parameter."""
    try:
        documented = docstring_parser.parse(text)
    except docstring_parser.ParseError:  # written in a style of its own: the model may read it as it is
        return text, {}
    return (documented.description or "").strip(), {each.arg_name: each.description or "" for each in documented.params}


DEFAULT_HOURS = 24.0


class Later(Exception):
    """Returned or raised by a tool whose result comes later. The turn waits for it, also across restarts.

    Any process hands the result in with `await service.hand_in(context, name, result)`.

    Attributes:
        name: Identifies the result, such as the number of a job; unique in its conversation.
        hours: The time limit; after it, the model is told that no result came.
        note: The message to the person meanwhile; by default, that it takes longer.
    """

    is_told = True  # whether the person is given that message

    def __init__(self, name: str, *, hours: float = DEFAULT_HOURS, note: str | None = None) -> None:
        """Make one with the name of what is waited for.

        Raises:
            InvalidTool: there is no name, or hours are none.
        """
        if not name or not 0 < hours < float("inf"):
            raise InvalidTool(f"Later takes a name and a number of hours above 0, not {name!r} and {hours}")
        super().__init__(name)
        self.name = str(name)
        self.hours = hours
        self.note = note


async def _nothing() -> str:
    """Run at the server of the model alone."""
    return "Error: this is not run here; go on without it."


class HostedTool(Tool):
    """A tool of the model's server. If the server does not have it, the model is asked without it.

    Attributes:
        schema: What is sent, in the form of Responses.
    """

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        super().__init__(_nothing, name=name, idempotent=True, reads_untrusted=True)
        self.schema = schema


# An unnamed place: without one, the server searches as if everybody were in the United States.
WEB_SEARCH: Final = HostedTool("web_search", {"type": "web_search", "user_location": {"type": "approximate"}})
"""OpenAI's own search of the web, by Responses. Source: OpenAI API, "Web search"."""
