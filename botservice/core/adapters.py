"""Base classes that others implement, and how an object that does not inherit from one is taken all the same."""

from typing import Any, TypeVar

P = TypeVar("P")


def adopt(port: type[P], given: Any) -> P:
    """Return given itself where it inherits from a port, else an object with its members and the port's defaults.

    Members of given are looked up whenever they are used, so that they may change.
    """
    if isinstance(given, port):
        return given

    class Adopted(port):  # type: ignore[valid-type, misc]
        def __init__(self) -> None:
            """Leave all that there is to given."""

        def __getattribute__(self, name: str) -> Any:
            is_given = not name.startswith("__") and hasattr(given, name)
            return getattr(given, name) if is_given else super().__getattribute__(name)

    return Adopted()
