"""What the model server refuses about tools and their schemas."""

from typing import Any

from standins.openai_refusals import RefusedError, check_name, refuse, wrong_type

MAX_TOOLS = 128


def check_tools(body: dict[str, Any]) -> None:
    tools = body.get("tools")
    if tools is None:
        for name in ("tool_choice", "parallel_tool_calls"):
            if body.get(name) is not None and body[name] != "none":
                raise refuse(
                    f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified.", param=name
                )
        return
    if not isinstance(tools, list):
        raise wrong_type("tools", "an array of objects", tools)
    if not 1 <= len(tools) <= MAX_TOOLS:
        problem = "empty array" if not tools else "array too long"
        bound = "minimum length 1" if not tools else f"maximum length {MAX_TOOLS}"
        got = "an empty array" if not tools else f"an array with length {len(tools)}"
        code = "empty_array" if not tools else "array_above_max_length"
        message = f"Invalid 'tools': {problem}. Expected an array with {bound}, but got {got} instead."
        raise refuse(message, param="tools", code=code)
    names = []
    for number, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or tool.get("type") != "function":
            param = f"tools[{number}].function"
            raise refuse(f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")
        check_name(f"tools[{number}].function.name", function.get("name"))
        names.append(function["name"])
        check_function(number, function)
    check_choice(body.get("tool_choice"), names)


def check_choice(choice: Any, names: list[str]) -> None:
    if choice is None or choice in ("none", "auto", "required"):
        return
    named = (choice.get("function") or {}).get("name") if isinstance(choice, dict) else None
    if named is None:
        raise refuse(
            f"Invalid value: '{choice}'. Supported values are: 'none', 'auto', and 'required'.", param="tool_choice"
        )
    if named not in names:
        message = f"Invalid value for 'tool_choice': tool '{named}' is not in 'tools'."
        raise refuse(message, param="tool_choice.function.name")


def check_function(number: int, function: dict[str, Any]) -> None:
    name, param = function["name"], f"tools[{number}].function.parameters"
    description = function.get("description")
    if description is not None and not isinstance(description, str):
        raise wrong_type(f"tools[{number}].function.description", "a string", description)
    schema = function.get("parameters")
    if schema is None:
        return
    if not isinstance(schema, dict):
        raise wrong_type(param, "an object", schema)
    if schema and schema.get("type") != "object":
        raise refuse(
            f"Invalid schema for function '{name}': schema must be a JSON Schema of 'type: \"object\"', got "
            f"'type: \"{schema.get('type')}\"'.",
            param=param,
            code="invalid_function_parameters",
        )
    _check_schema(name, param, schema, (), strict=bool(function.get("strict")))


def _check_schema(name: str, param: str, schema: Any, where: tuple[str, ...], *, strict: bool) -> None:
    def wrong(problem: str) -> RefusedError:
        message = f"Invalid schema for function '{name}': In context={where}, {problem}"
        return refuse(message, param=param, code="invalid_function_parameters")

    if not isinstance(schema, dict):
        raise wrong(f"{schema!r} is not of type 'object', 'boolean'.")
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        raise wrong(f"{properties!r} is not of type 'object'.")
    if schema.get("type") == "array" and "items" not in schema:
        raise wrong("array schema missing items.")
    if strict and schema.get("type") == "object":
        if schema.get("additionalProperties") is not False:
            raise wrong("'additionalProperties' is required to be supplied and to be false.")
        if set(schema.get("required", ())) != set(properties):
            raise wrong("'required' is required to be supplied and to be an array including every key in properties.")
    for key, inner in properties.items():
        _check_schema(name, param, inner, (*where, "properties", key), strict=strict)
    if isinstance(schema.get("items"), dict):
        _check_schema(name, param, schema["items"], (*where, "items"), strict=strict)
