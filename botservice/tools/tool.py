"""Functions that a model may call."""

import inspect
import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, get_type_hints, overload

import docstring_parser
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import PydanticInvalidForJsonSchema

from botservice.contexts import AgentContext
from botservice.errors import InvalidTool

ToolFunction = Callable[..., Any]

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")  # OpenAI API reference, function.name
DEFAULT_TIMEOUT_SECONDS = 60.0


class Tool:
    """A function with a name, a description and a schema, made from its signature and its docstring.

    A parameter annotated with `AgentContext` receives the context of the call and is not in the schema. The function
    may be async, or not: then it runs in a thread.

    Attributes:
        name: What the model calls it by.
        description: What the model is told of it.
        is_final: Whether its output is the answer, word for word.
        idempotent: Whether a call that was cut off may be run again.
        timeout_seconds: How long a call may take.
    """

    def __init__(
        self,
        function: ToolFunction,
        *,
        name: str | None = None,
        description: str | None = None,
        is_final: bool = False,
        idempotent: bool = False,
        timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> None:
        """Wrap function.

        Raises:
            InvalidTool: the name cannot be sent to a model, or the signature has no schema.
        """
        self._function = function
        documented = docstring_parser.parse(inspect.getdoc(function) or "")
        self.name = name or getattr(function, "__name__", "")
        if not _NAME.fullmatch(self.name):
            raise InvalidTool(f"a tool's name is 1 to 64 letters, digits, _ or -, not {self.name!r}: pass name=")
        self.description = description or documented.description or ""
        self.is_final = is_final
        self.idempotent = idempotent
        if timeout_seconds <= 0:
            raise InvalidTool(f"timeout_seconds of {self.name} must be above 0, not {timeout_seconds}")
        self.timeout_seconds = timeout_seconds
        self._context_parameters: list[str] = []
        self._arguments = self._model({each.arg_name: each.description for each in documented.params})
        self.schema = self._schema()

    def __repr__(self) -> str:
        return f"Tool({self.name})"

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function itself."""
        return self._function(*arguments, **named)

    @property
    def is_async(self) -> bool:
        """Whether the function runs on the event loop."""
        return inspect.iscoroutinefunction(self._function)

    def bind(self, arguments: Mapping[str, Any], context: AgentContext) -> Callable[[], Awaitable[Any] | Any]:
        """Return a call of the function with a model's arguments.

        Raises:
            ValueError: the arguments do not fit; the message says which and why, for the model to read.
        """
        try:
            checked = self._arguments.model_validate(dict(arguments))
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(map(str, each['loc'])) or 'arguments'}: {each['msg']}" for each in error.errors()
            )
            raise ValueError(f"the arguments of {self.name} do not fit: {problems}") from None
        values = {name: getattr(checked, field) for field, name in self._names.items() if field in self._given(checked)}
        values.update(dict.fromkeys(self._context_parameters, context))
        return lambda: self._function(**values)

    def _given(self, checked: BaseModel) -> set[str]:
        return checked.model_fields_set

    def _model(self, descriptions: Mapping[str, str | None]) -> type[BaseModel]:
        try:
            hints = get_type_hints(self._function, include_extras=True)
        except (NameError, TypeError) as error:
            raise InvalidTool(f"the annotations of tool {self.name} cannot be read: {error}") from error
        fields: dict[str, Any] = {}
        self._names: dict[str, str] = {}
        for number, parameter in enumerate(inspect.signature(self._function).parameters.values()):
            if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                raise InvalidTool(
                    f"parameter {parameter.name} of tool {self.name} has no name that a model could use: "
                    "take ordinary parameters instead of * and **"
                )
            hint = hints.get(parameter.name, Any)
            if isinstance(hint, type) and issubclass(hint, AgentContext):
                self._context_parameters.append(parameter.name)
                continue
            # Any parameter name is allowed, so pydantic's own reserved names must not be met: fields are numbered.
            field = f"field{number}"
            self._names[field] = parameter.name
            default = ... if parameter.default is parameter.empty else parameter.default
            fields[field] = (
                hint,
                Field(default, alias=parameter.name, description=descriptions.get(parameter.name), title=None),
            )
        try:
            return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)
        except PydanticUserError as error:
            raise InvalidTool(f"tool {self.name} takes something that has no JSON schema: {error.message}") from error

    def _schema(self) -> Mapping[str, Any]:
        try:
            parameters = self._arguments.model_json_schema()
        except PydanticInvalidForJsonSchema as error:
            raise InvalidTool(f"tool {self.name} takes something that has no JSON schema: {error.message}") from error
        parameters = _without_titles(parameters)
        parameters.setdefault("properties", {})
        function = {"name": self.name, "description": self.description, "parameters": parameters}
        return {"type": "function", "function": function}


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
) -> Callable[[ToolFunction], Tool]: ...
def tool(function: ToolFunction | None = None, /, **options: Any) -> Tool | Callable[[ToolFunction], Tool]:
    """Make a tool of the function below: `@tool`, or `@tool(name=…, is_final=…)` with the options of `Tool`."""
    if function is not None:
        return Tool(function)
    return lambda decorated: Tool(decorated, **options)


def _without_titles(schema: Any) -> Any:
    """Return schema without the titles that pydantic makes up; a property that is called title stays."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: _without_titles(each) for name, each in value.items()}
        if key in ("properties", "$defs") and isinstance(value, dict)
        else _without_titles(value)
        for key, value in schema.items()
        if not (key == "title" and isinstance(value, str))
    }
