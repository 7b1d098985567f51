"""Results of calls from a record: the same call gets the same result, and no tool runs."""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from botservice.core.messages import ToolCall
from botservice.devtools.replayed_answers import CallMade, ResultOrigin

ANY_ARGUMENTS: Final = "*"
_MISSING: Final = (
    "Error: this call is not in the record, so it was not made and there is no result. Answer with what you have."
)


class RecordedResults:
    """What calls gave. Of several calls that are the same, each gets its own result in their order, then the last.

    Those for all are the results of every call of their tool that has none of its own.
    """

    def __init__(self, calls: Iterable[CallMade], for_all: Iterable[CallMade] = ()) -> None:
        self._by_call: defaultdict[tuple[str, str], list[CallMade]] = defaultdict(list)
        for call in calls:
            self._by_call[call.name, _canonical(call.arguments)].append(call)
        for call in for_all:
            self._by_call[call.name, ANY_ARGUMENTS].append(call)

    def take(self, call: ToolCall) -> CallMade:
        """Return the recorded result of a call."""
        arguments = call.arguments if call.malformed_arguments is None else {}
        same = self._by_call.get((call.name, _canonical(arguments))) or self._by_call.get((call.name, ANY_ARGUMENTS))
        if not same or call.malformed_arguments is not None:
            return CallMade(call.name, arguments, _MISSING, ResultOrigin.MISSING, is_error=True)
        known = same.pop(0) if len(same) > 1 else same[0]
        return CallMade(call.name, arguments, known.result, ResultOrigin.RECORD, known.is_error)


def _canonical(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False, default=list)
