"""What the model server says of its models: the list, when each of them ends, and how it refuses one."""

from collections.abc import Iterable, Mapping
from typing import Any

from standins.openai_replies import Failure

STANDING = ("gpt-6.1-terra", "text-embedding-3-small", "gpt-transcribe")
CREATED = 1_750_000_000


def describe(names: Iterable[str], shutdowns: Mapping[str, str | None] | None) -> list[dict[str, Any]]:
    """Return models as `GET /v1/models` does; without shutdowns, like a server that does not know of any."""
    told: list[dict[str, Any]] = []
    for name in names:
        model = {"id": name, "object": "model", "created": CREATED, "owned_by": "standin"}
        told.append(model if shutdowns is None else {**model, "shutdown_date": shutdowns.get(name)})
    return told


def model_not_found(name: str) -> Failure:
    """Return the 404 of a name that is unknown or retired."""
    message = f"The model `{name}` does not exist or you do not have access to it."
    return Failure(404, message, code="model_not_found")


def no_access(name: str) -> Failure:
    """Return the 403 of a project that may not use a model."""
    message = f"Project `proj_standin` does not have access to model `{name}`"
    return Failure(403, message, code="model_not_found")


def wrong_key() -> Failure:
    """Return the 401 of a key that nobody knows."""
    return Failure(401, "Incorrect API key provided: sk-***.", code="invalid_api_key")


def may_not_list() -> Failure:
    """Return the 403 of a restricted key without the right to read the list of models."""
    message = (
        "You have insufficient permissions for this operation. Missing scopes: api.model.read. Check that you have the "
        "correct role in your organization and project, and if you're using a restricted API key, that it has the "
        "necessary scopes."
    )
    return Failure(403, message, code="missing_scope")


def overloaded() -> Failure:
    """Return the 503 of a busy evening."""
    return Failure(503, "The engine is currently overloaded, please try again later", "server_error", "overloaded")
