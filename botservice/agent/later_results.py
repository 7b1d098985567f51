"""The value that a tool returns if its result comes later."""

from botservice.core.errors import InvalidTool

DEFAULT_HOURS = 24.0


class Later(Exception):
    """Returned or raised by a tool whose result comes later: the turn waits for it, over restarts too.

    The result is handed in by `await service.hand_in(context, name, result)`, from any process.

    Attributes:
        name: What the result is handed in for, such as the number of a job; unique in its conversation.
        hours: How long it is waited for; then the model is told that nothing came.
        note: What the person is told meanwhile; by default, that it takes longer.
    """

    def __init__(self, name: str, *, hours: float = DEFAULT_HOURS, note: str | None = None) -> None:
        """Make one with the name of what is waited for.

        Raises:
            InvalidTool: there is no name, or hours are none.
        """
        if not name or not 0 < hours < float("inf"):
            raise InvalidTool(f"Later takes a name and a number of hours above 0, not {name!r} and {hours}")
        super().__init__(name)
        self.name = str(name)
        self.hours = hours
        self.note = note
