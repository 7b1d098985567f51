"""Results of calls from a record: the same call gets the same result, and no tool runs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from botservice.again.answers import CallMade, Origin
from botservice.messages import ToolCall

ANY_ARGUMENTS: Final = "*"
_MISSING: Final = (
    "Error: this call is not in the record, so it was not made and there is no result. Answer with what you have."
)


@dataclass(slots=True)
class RecordedResults:
    """What calls gave. Of several calls that are the same, each gets its own result in their order, then the last."""

    _by_call: dict[tuple[str, str], list[CallMade]] = field(default_factory=dict)

    @classmethod
    def of(cls, calls: Iterable[CallMade]) -> "RecordedResults":
        """Return the results of calls."""
        results = cls()
        for call in calls:
            results._by_call.setdefault((call.name, _canonical(call.arguments)), []).append(call)
        return results

    def add_for_all(self, call: CallMade) -> None:
        """Set the result of all calls of a tool that have no result of their own."""
        self._by_call.setdefault((call.name, ANY_ARGUMENTS), []).append(call)

    def take(self, call: ToolCall) -> CallMade:
        """Return the recorded result of a call."""
        arguments = call.arguments if call.malformed_arguments is None else {}
        same = self._by_call.get((call.name, _canonical(arguments))) or self._by_call.get((call.name, ANY_ARGUMENTS))
        if not same or call.malformed_arguments is not None:
            return CallMade(call.name, arguments, _MISSING, Origin.MISSING, is_error=True)
        known = same.pop(0) if len(same) > 1 else same[0]
        return CallMade(call.name, arguments, known.result, Origin.RECORD, known.is_error)


def _canonical(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=list)
