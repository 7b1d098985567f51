"""The request of a step, as it would be sent now: to be read, kept, or sent again by hand. No key is in it."""

import json
import shlex
from collections.abc import Mapping, Sequence
from typing import Any, Final

from botservice.agents import Agent
from botservice.memory import MemoryItem
from botservice.memory.readable import listed
from botservice.telemetry import redact

_ELSEWHERE: Final = "https://api.openai.com/v1"


async def make_request(agent: Agent | None, step: MemoryItem, offered: Sequence[str]) -> dict[str, Any]:
    """Return where a step's prompt would be sent, and what: with the tools of today that had been offered."""
    tools = {} if agent is None else await agent.tools_now()
    schemas = [dict(tools[name].schema) for name in offered if name in tools]
    messages = listed(step.get_value("model_input_messages"))
    llm = _find_llm(getattr(agent, "llm", None), step.get_value("model"))
    preview = getattr(llm, "preview", None)
    if preview is not None:
        return dict(preview(messages, schemas))
    body: dict[str, Any] = {"model": step.get_value("model") or "unknown"}
    if schemas:
        body["tools"] = schemas
    return {"url": f"{_ELSEWHERE}/chat/completions", "body": {**body, "messages": messages}}


def write_json(request: Mapping[str, Any]) -> str:
    """Return the body of a request as JSON, without secrets."""
    return redact(json.dumps(request["body"], indent=2, ensure_ascii=True, default=str)) + "\n"


def write_curl(request: Mapping[str, Any]) -> str:
    """Return a request as a command for a shell; the key comes from the environment.

    The body comes by standard input, because an argument has 128 KiB at most on Linux. It is one line that begins with
    a brace, so nothing in it ends it; and no shell sees an event of its history in it (bash(1), HISTORY EXPANSION).
    """
    body = redact(json.dumps(request["body"], ensure_ascii=True, default=str)).replace("!", "\\u0021")
    return (
        f"curl {shlex.quote(redact(str(request['url'])))} \\\n"
        '  -H "Authorization: Bearer $OPENAI_API_KEY" \\\n'
        "  -H 'Content-Type: application/json' \\\n"
        f"  --data-binary @- <<'END'\n{body}\nEND\n"
    )


def _find_llm(llm: object, model: object) -> object:
    """Return the model that answered, where several may."""
    members = getattr(llm, "llms", ())
    return next((each for each in members if getattr(each, "model", None) == model), members[0] if members else llm)
