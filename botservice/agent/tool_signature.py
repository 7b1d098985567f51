"""The parameters of a function: as a JSON schema for the model, and to check its arguments."""

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema

from botservice.conversation.context import AgentContext
from botservice.core.errors import InvalidTool

_OWNERS = ("self", "cls")
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ArgumentsError(ValueError):
    """What a model gave does not fit; the message says which argument and why, for the model to read."""


class Signature:
    """The parameters of a tool's function."""

    def __init__(self, function: Callable[..., Any], name: str, descriptions: Mapping[str, str]) -> None:
        """Read the signature of function."""
        self._name = name
        self._names: dict[str, str] = {}  # a field's name → the parameter's
        self._context_parameters: list[str] = []
        hints = self._read_hints(function)
        fields: dict[str, Any] = {}
        for number, parameter in enumerate(inspect.signature(function).parameters.values()):
            self._check(parameter, is_first=number == 0)
            hint = hints.get(parameter.name, Any)
            if _is_context(hint):
                self._context_parameters.append(parameter.name)
                continue
            # pydantic keeps some names to itself, and a parameter may have any: fields are numbered.
            field = f"field{number}"
            self._names[field] = parameter.name
            fields[field] = _as_field(parameter, hint, descriptions.get(parameter.name))
        try:
            self._model: type[BaseModel] = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
            self.schema = _without_titles(self._model.model_json_schema(schema_generator=_Schema))
        except (PydanticUserError, PydanticUndefinedAnnotation) as error:
            raise InvalidTool(f"tool {name} takes something that has no JSON schema: {error.message}") from error
        self.schema.setdefault("properties", {})

    @property
    def takes_context(self) -> bool:
        """Whether a call gets the conversation."""
        return bool(self._context_parameters)

    def bind(self, arguments: Mapping[str, Any], context: AgentContext) -> dict[str, Any]:
        """Return what to call the function with: what was given, as the types that it takes, and the context."""
        checked = self._check_arguments(arguments)
        values = {self._names[field]: getattr(checked, field) for field in checked.model_fields_set}
        return {**values, **dict.fromkeys(self._context_parameters, context)}

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the function gets but for the context: the defaults of what was not given, too."""
        checked = self._check_arguments(arguments)
        return {name: getattr(checked, field) for field, name in self._names.items()}

    def _check_arguments(self, arguments: Mapping[str, Any]) -> BaseModel:
        try:
            return self._model.model_validate(dict(arguments))
        except ValidationError as error:
            problems = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
            raise ArgumentsError(f"the arguments of {self._name} do not fit: {problems}") from None

    def _read_hints(self, function: Callable[..., Any]) -> dict[str, Any]:
        described = function if inspect.isroutine(function) else type(function).__call__
        try:
            return get_type_hints(described, include_extras=True)
        except (NameError, TypeError) as error:
            raise InvalidTool(f"the annotations of tool {self._name} cannot be read: {error}") from error

    def _check(self, parameter: inspect.Parameter, *, is_first: bool) -> None:
        if is_first and parameter.name in _OWNERS and parameter.annotation is parameter.empty:
            raise InvalidTool(
                f"tool {self._name} is a method, and a model would have to say what {parameter.name} is: "
                f"make the tool of an object's method, as tool(thing.{self._name})"
            )
        if parameter.kind not in _NAMED:
            raise InvalidTool(
                f"parameter {parameter.name} of tool {self._name} has no name that a model could use: "
                "take ordinary parameters instead of * and **"
            )
        if isinstance(parameter.default, FieldInfo):
            raise InvalidTool(
                f"the default of parameter {parameter.name} of tool {self._name} is a Field: "
                "write Annotated[…, Field(…)] and an ordinary default"
            )


class _Schema(GenerateJsonSchema):
    # A default that JSON does not know is the function's own business.
    ignored_warning_kinds = {"non-serializable-default", "skipped-choice"}  # noqa: RUF012 - pydantic's own name


def _as_field(parameter: inspect.Parameter, hint: Any, description: str | None) -> tuple[Any, Any]:
    default = ... if parameter.default is parameter.empty else parameter.default
    # Only what is known may be given: a description of None would hide that of an Annotated type.
    described: dict[str, Any] = {"description": description} if description else {}
    return hint, Field(default, alias=parameter.name, **described)


def _is_context(hint: Any) -> bool:
    """Return whether hint is AgentContext, also where it may be None."""
    if get_origin(hint) is Annotated:
        return _is_context(get_args(hint)[0])
    if get_origin(hint) in (Union, types.UnionType):
        members = [each for each in get_args(hint) if each is not type(None)]
        return len(members) == 1 and _is_context(members[0])
    return isinstance(hint, type) and issubclass(hint, AgentContext)


def _without_titles(schema: Any) -> Any:
    """Return schema without the titles that pydantic makes up of names; values in it stay as they are."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    cleaned = {}
    for key, value in schema.items():
        if key in ("properties", "$defs"):
            cleaned[key] = {name: _without_titles(each) for name, each in value.items()}
        elif key in ("const", "default", "enum", "examples"):
            cleaned[key] = value
        elif key != "title":
            cleaned[key] = _without_titles(value)
    return cleaned
