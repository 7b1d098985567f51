"""Why a request is not taken."""


class Refusal(Exception):
    """A request that is not taken; its text is for the person.

    Attributes:
        status: The HTTP status that says so.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
