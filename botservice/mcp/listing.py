"""Reading the list of a server's tools for a model: untrusted data, bounded."""

import json
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from botservice.core.messages import storable
from botservice.core.quoting import quote_text, shortened
from botservice.telemetry.logs import redact

_LONGEST_DESCRIPTION: Final = 2_000
_LONGEST_REMARK: Final = 500  # of one argument
_LARGEST_SCHEMA: Final = 16_000  # characters of JSON
_DEEPEST: Final = 24
_MOST_NODES: Final = 500
_REMEMBERED: Final = 2_000  # schemas
_LONGEST_KEY: Final = 128
_OF_SCHEMAS: Final = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_VALUES: Final = ("const", "default", "enum", "examples", "required")
_PACKED: Final = "x-as-it-came"
_LEFT_OUT: Final = ("title", "$comment", "$schema", "$id")

logger = logging.getLogger(__name__)


class UnusableSchema(ValueError):
    """What a server says of a tool's arguments cannot be shown to a model."""


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool as it may be offered.

    Attributes:
        name: As the server has it.
        description: Bounded, without signs that cannot be seen; nothing in it begins or ends a part of a prompt.
        parameters: The JSON schema of its arguments.
        is_open_world: Whether it may give what strangers wrote: by the protocol, unless it says that it does not.
    """

    name: str
    description: str
    parameters: Mapping[str, Any]
    is_read_only: bool = False
    is_idempotent: bool = False
    is_open_world: bool = True


def read_listing(
    server: str, tools: Iterable[Any], allowed: frozenset[str] | None, limited: Iterable[str] = ()
) -> tuple[ListedTool, ...]:
    """Return the tools that may be offered; each of the others is named in the log.

    Args:
        limited: The tools for which the file names roles: one that the server does not have is named as well.
    """
    found: dict[str, ListedTool] = {}
    for tool in tools:
        if allowed is not None and tool.name not in allowed:
            continue
        if tool.name in found:
            _leave_out(server, tool.name, "there is another one of that name")
            continue
        try:
            found[tool.name] = _read(tool)
        except UnusableSchema as error:
            _leave_out(server, tool.name, str(error))
        except Exception as error:  # noqa: BLE001 - a border: whatever a server says, it costs this tool only
            _leave_out(server, tool.name, f"it cannot be read ({type(error).__name__})")
    missing = sorted({*limited, *(allowed or ())} - found.keys())
    for name in missing:
        _leave_out(server, name, "the server has no such tool that can be used")
    return tuple(found.values())


def clean(text: Any, limit: int) -> str:
    """Return a foreign text: bounded, in lines, without signs that steer, and without what marks parts of a prompt."""
    seen = "".join(each if each.isprintable() or each == "\n" else " " for each in storable(str(text))[: limit + 1])
    return redact(quote_text(shortened(seen, limit)).strip())


def _read(tool: Any) -> ListedTool:
    hints = tool.annotations
    is_read_only = hints is not None and hints.read_only_hint is True
    said = clean(tool.description or tool.title or "", _LONGEST_DESCRIPTION)
    return ListedTool(
        tool.name,
        said or clean(tool.name, _LONGEST_KEY),
        read_schema(tool.input_schema),
        is_read_only=is_read_only,
        is_idempotent=is_read_only or (hints is not None and hints.idempotent_hint is True),
        is_open_world=hints is None or hints.open_world_hint is not False,
    )


def pack_schema(schema: Any) -> dict[str, Any]:
    """Return what a server says of a tool's arguments in a form that the client takes, whatever it is."""
    if isinstance(schema, dict) and schema.get("type", "object") == "object":
        properties, required = schema.get("properties", {}), schema.get("required", [])
        are_objects = isinstance(properties, dict) and all(isinstance(each, dict) for each in properties.values())
        if are_objects and isinstance(required, list) and all(isinstance(each, str) for each in required):
            return {**schema, "type": "object"}
    return {"type": "object", _PACKED: json.dumps(schema)}


def read_schema(schema: Any) -> dict[str, Any]:
    """Return the schema of a tool's arguments as a model's server takes it.

    Raises:
        UnusableSchema: it is none, or one that refuses a whole request.
    """
    if _PACKED in schema:
        schema = json.loads(schema[_PACKED])
    if len(json.dumps(schema, ensure_ascii=False)) > _LARGEST_SCHEMA:
        raise UnusableSchema(f"its schema is longer than {_LARGEST_SCHEMA} characters")
    if not isinstance(schema, dict) or schema.get("type", "object") != "object":
        raise UnusableSchema("its schema is not that of an object")
    read: dict[str, Any] = _Cleaning().clean({"properties": {}, **schema, "type": "object"}, 0)
    wrong = _find_wrong(json.dumps(read))
    if wrong is not None:
        raise UnusableSchema(f"its schema is no JSON schema, at {wrong}")
    return read


@lru_cache(maxsize=_REMEMBERED)
def _find_wrong(schema: str) -> str | None:
    """Return where a schema is none, or None if it is one. Servers that list again mostly say the same."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(json.loads(schema))
    except SchemaError as error:
        return "/".join(map(str, error.path))[:80] or "its top"
    return None


class _Cleaning:
    """One schema with its remarks bounded; names and values stay as they are, because calls need them."""

    def __init__(self) -> None:
        self._nodes = 0

    def clean(self, schema: Any, depth: int) -> Any:
        self._nodes += 1
        if self._nodes > _MOST_NODES:
            raise UnusableSchema(f"its schema has more than {_MOST_NODES} parts")
        if depth > _DEEPEST:
            raise UnusableSchema("its schema is nested too deep")
        if isinstance(schema, list):
            return [self.clean(each, depth + 1) for each in schema]
        if not isinstance(schema, dict):
            return schema
        _check_keys(schema)
        return {key: self._entry(key, value, depth) for key, value in schema.items() if not _is_left_out(key)}

    def _entry(self, key: str, value: Any, depth: int) -> Any:
        if key == "description":
            return clean(value, _LONGEST_REMARK)
        if key in _VALUES:
            return value
        if key in _OF_SCHEMAS and isinstance(value, dict):
            _check_keys(value)
            return {name: self.clean(each, depth + 1) for name, each in value.items()}
        if key in ("$ref", "$dynamicRef") and not str(value).startswith("#"):
            raise UnusableSchema("its schema points to another place")
        return self.clean(value, depth + 1)


def _is_left_out(key: str) -> bool:
    return key in _LEFT_OUT or key.lower().startswith("x-")


def _check_keys(keys: Iterable[str]) -> None:
    if any(len(key) > _LONGEST_KEY or not key.isprintable() for key in keys):
        raise UnusableSchema("its schema has names that nobody can read")


def _leave_out(server: str, tool: str, reason: str) -> None:
    extra = {"server": server, "tool": clean(tool, _LONGEST_KEY), "reason": reason}
    logger.warning("mcp.tool_left_out", extra=extra)
