"""A past turn as a case of a file: it needs no record from then on, and holds what people said."""

import json
from typing import Any

import yaml

from botservice.conversation.replay import visible
from botservice.devtools.recorded_turn import RecordedTurn
from botservice.people.budgets import Budgets


def write_case(record: RecordedTurn) -> str:
    """Return a file with one case: what the model read below the agent's prompt, and what its tools gave."""
    first, end = record.sections.get("system", (0, 0))
    messages = [each for place, each in enumerate(record.prompt) if not first <= place < end]
    case: dict[str, Any] = {"name": f"turn {record.turn_id}", "messages": messages}
    if record.tool_calls:
        case["tools"] = [
            {
                "name": each.name,
                "arguments": json.loads(json.dumps(each.arguments)),
                "error" if each.is_error else "result": each.result,
            }
            for each in record.tool_calls
        ]
    called = list(dict.fromkeys(each.name for each in record.tool_calls))
    case["expect"] = {"calls": called} if called else {}
    then = record.answer(Budgets())
    heading = [
        "It holds what people said: keep it as you keep the database.",
        "Say below expect what a good answer is, such as  contains: Rex  or  max_tokens: 200",
        "It was answered then:",
        *(f"  {line}" for line in visible(then.text or (then.error or "")).split("\n")),
    ]
    text = yaml.dump({"cases": [case]}, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=110)
    return "".join(f"# {line}".rstrip() + "\n" for line in heading) + str(text)


class _Dumper(yaml.SafeDumper):
    """Writes texts of several lines as they are read."""


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _write_text)
