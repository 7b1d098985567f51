"""What a server says of a call while it works on it, shown as what a tool of ours says."""

import contextvars
from typing import TYPE_CHECKING, Final

from botservice.agent.tool_progress import LONGEST
from botservice.agent.tool_progress import progress as say
from botservice.mcp.listing import clean

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

_LARGEST: Final = 1e12


def progress_of_server() -> "ProgressFnT":
    """Return what takes notifications of progress for the call that is made now, whichever task they come in."""
    context = contextvars.copy_context()

    async def show(progress: float, total: float | None, message: str | None) -> None:
        text = _describe(progress, total, message)
        if text:
            context.run(say, text)

    return show


def _describe(done: float, total: float | None, message: str | None) -> str:
    """Return it in words: those of the server where it has some, otherwise how much is done."""
    said = clean((message or "")[: LONGEST + 1], LONGEST)
    if said or not 0 <= done <= _LARGEST:
        return said
    return f"{done:g} / {total:g}" if total is not None and 0 <= total <= _LARGEST else f"{done:g}"
