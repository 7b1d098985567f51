"""How the model server refuses a request."""

import re
from typing import Any

from standins.openai_replies import Failure

NAME_PATTERN = r"^[a-zA-Z0-9_-]+$"


class RefusedError(Exception):
    """The request is answered with `failure`."""

    def __init__(self, failure: Failure):
        super().__init__(failure.message)
        self.failure = failure


def refuse(message: str, *, param: str | None = None, code: str | None = None, status: int = 400) -> RefusedError:
    return RefusedError(Failure(status, message, param=param, code=code))


def _type_name(value: Any) -> str:
    names = {
        str: "a string",
        bool: "a boolean",
        int: "an integer",
        float: "a decimal",
        list: "an array",
        dict: "an object",
    }
    return "null" if value is None else names.get(type(value), "something else")


def wrong_type(param: str, expected: str, value: Any) -> RefusedError:
    article = _type_name(value)
    instead = "but got null instead" if value is None else f"but got {article} instead"
    return refuse(f"Invalid type for '{param}': expected {expected}, {instead}.", param=param, code="invalid_type")


def too_long(param: str, limit: int, length: int) -> RefusedError:
    return refuse(
        f"Invalid '{param}': string too long. Expected a string with maximum length {limit}, but got a string with "
        f"length {length} instead.",
        param=param,
        code="string_above_max_length",
    )


def check_name(param: str, name: Any) -> None:
    if not isinstance(name, str) or not name:
        raise refuse(f"Missing required parameter: '{param}'.", param=param, code="missing_required_parameter")
    if len(name) > 64:
        raise too_long(param, 64, len(name))
    if not re.fullmatch(r"[a-zA-Z0-9_-]+", name):
        raise refuse(
            f"Invalid '{param}': string does not match pattern. Expected a string that matches the pattern "
            f"'{NAME_PATTERN}'.",
            param=param,
            code="invalid_value",
        )
