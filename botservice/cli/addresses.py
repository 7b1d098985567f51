"""Finding the conversation or person that a command's argument names."""

from collections.abc import Mapping

from botservice.core.errors import BotServiceError
from botservice.core.messages import Author
from botservice.devtools.conversations import list_contexts
from botservice.devtools.queries import check_context
from botservice.people.names import key_text, transport_of
from botservice.storage.database import Storage

_MOST_DIGITS = 18  # what a database's integer holds for certain
_HOW = "name it by its number, as `botservice contexts` lists it, or by its keys, such as telegram:42 or chat_id=42"


async def find_context_id(storage: Storage, address: str) -> int:
    """Return the id of the one conversation that an address names.

    Args:
        address: A number; `transport:value`, where one of the keys has that value; or `key=value`, also several.
    """
    if address.isdecimal():
        if len(address) > _MOST_DIGITS:
            raise BotServiceError(f"there is no context {address}: `botservice contexts` lists them")
        number = int(address)
        await storage.read(lambda connection: check_context(connection, number))
        return number
    named = await list_contexts(storage, having=_some_value(address))
    found = [each.id for each in named if _matches(address, each.keys)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise BotServiceError(f"no context is meant by {address!r}: {_HOW}")
    numbers = ", ".join(map(str, sorted(found)))
    raise BotServiceError(f"{address!r} means more than one context: {numbers}. Take one of these numbers")


def parse_person(text: str) -> Author:
    """Return the identity that `platform:id` names."""
    platform, _, person_id = text.partition(":")
    if not platform or not person_id:
        raise BotServiceError(f"--person must be platform:id, such as telegram:42, not {text!r}")
    return Author(platform, person_id)


def _some_value(address: str) -> str:
    """Return a value that the keys have which an address means."""
    if "=" in address:
        address = address.replace(",", " ").split()[0]
        return address.partition("=")[2]
    return address.partition(":")[2]


def _matches(address: str, keys: Mapping[str, str]) -> bool:
    if "=" in address:
        pairs = [part.partition("=") for part in address.replace(",", " ").split()]
        return all(name in keys and key_text(keys[name]) == value for name, _, value in pairs)
    transport, _, value = address.partition(":")
    named = [key_text(each) for name, each in keys.items() if name != "transport"]
    return transport_of(keys) == transport and value in named
