"""The form that a program wants an answer in: a pydantic model, asked for in words and as a schema of the server."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import BaseModel, ValidationError

from botservice.core.errors import InvalidArgument
from botservice.llm.chat import AnswerSchema, ChatLLM, ChatMessage

_ASK: Final = (
    "Give your final answer as one JSON object, without any other text, that is valid by this JSON schema:\n{schema}"
)
_WRONG: Final = "Your answer is not valid: {reason}. Answer again with the JSON object alone."
_FENCE: Final = "```"
_MOST_REASONS: Final = 5
# Source: OpenAI's guide on structured outputs, "Supported schemas"; what is left out is checked here all the same.
_KEPT: Final = frozenset(
    ("type", "enum", "const", "description", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
)
_FORMATS: Final = frozenset(("date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"))


class _NotStrictError(Exception):
    """No server can hold a model to a schema like this."""


@dataclass(frozen=True, slots=True)
class OutputForm:
    """The form of an answer.

    Attributes:
        model: What the answer becomes.
        schema: What a server holds its model to; None where that cannot be said as servers want it.
    """

    model: type[BaseModel]
    schema: AnswerSchema | None

    @classmethod
    def of(cls, model: Any) -> "OutputForm":
        """Make the form of a pydantic model.

        Raises:
            InvalidArgument: it is none.
        """
        if not (isinstance(model, type) and issubclass(model, BaseModel)):
            raise InvalidArgument(f"output= must be a class like `class Order(pydantic.BaseModel)`, not {model!r:.80}")
        name = re.sub(r"[^A-Za-z0-9_-]", "_", model.__name__)[:64]
        try:
            schema = AnswerSchema(name, _strict(model.model_json_schema()))
        except _NotStrictError:
            return cls(model, None)
        return cls(model, schema if schema.schema.get("type") == "object" else None)

    def ask(self) -> ChatMessage:
        """Return what the model is told, also where its server knows no schemas."""
        schema = json.dumps(self.model.model_json_schema(), ensure_ascii=False)
        return {"role": "user", "content": _ASK.format(schema=schema)}

    def options(self, llm: ChatLLM) -> dict[str, Any]:
        """Return what a model's `chat` is given so that its server holds it to the form, where that can be said."""
        return {"schema": self.schema} if self.schema is not None and llm.takes_schema else {}

    def read(self, answer: Any) -> BaseModel:
        """Return what an answer says.

        Raises:
            ValueError: it is not valid; the message says why.
        """
        try:
            if not isinstance(answer, str):
                return self.model.model_validate(answer)
            return self.model.model_validate_json(_without_fence(answer))
        except ValidationError as error:
            raise ValueError("; ".join(map(_spell, error.errors(include_url=False)[:_MOST_REASONS]))) from None

    def find_refusal(self, answer: Any) -> str | None:
        """Return what the model is told of an answer that is not valid; None for one that is."""
        try:
            self.read(answer)
        except ValueError as error:
            return _WRONG.format(reason=error)
        return None


def _spell(error: Mapping[str, Any]) -> str:
    where = ".".join(map(str, error["loc"]))
    return f"{where}: {error['msg']}" if where else str(error["msg"])


def _strict(schema: Any) -> dict[str, Any]:
    """Return a schema in which every property is required and no other is allowed, of what servers know.

    Raises:
        _NotStrictError: objects in it may have any properties, or values are of any type.
    """
    if not isinstance(schema, dict) or "allOf" in schema or "prefixItems" in schema:
        raise _NotStrictError
    if "$ref" in schema:
        return {"$ref": schema["$ref"]}  # nothing may stand with it
    made: dict[str, Any] = {name: value for name, value in schema.items() if name in _KEPT}
    if schema.get("format") in _FORMATS:
        made["format"] = schema["format"]
    if choices := schema.get("anyOf") or schema.get("oneOf"):
        made["anyOf"] = [_strict(each) for each in choices]
    if schema.get("type") == "object":
        made |= _strict_object(schema)
    if schema.get("type") == "array":
        made["items"] = _strict(schema.get("items"))
        made |= {name: schema[name] for name in ("minItems", "maxItems") if name in schema}
    if "$defs" in schema:
        made["$defs"] = {name: _strict(each) for name, each in schema["$defs"].items()}
    if not {"type", "anyOf", "enum", "const"} & {*made}:
        raise _NotStrictError
    return made


def _strict_object(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    if not properties or schema.get("additionalProperties"):
        raise _NotStrictError
    strict = {name: _strict(each) for name, each in properties.items()}
    return {"properties": strict, "required": list(strict), "additionalProperties": False}


def _without_fence(answer: str) -> str:
    """Return what stands in a fenced block of code, where the whole answer is one."""
    lines = answer.strip().splitlines()
    is_fenced = len(lines) > 2 and lines[0].startswith(_FENCE) and lines[-1].strip() == _FENCE
    return "\n".join(lines[1:-1]) if is_fenced else answer
