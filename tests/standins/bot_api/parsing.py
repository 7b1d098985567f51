"""Parse modes by their names."""

from collections.abc import Callable

from standins.bot_api.hypertext import Html
from standins.bot_api.markdown import Markdown, MarkdownV2
from standins.bot_api.markup import Entity, Reader


def parse(text: str, mode: str) -> tuple[str, list[Entity]]:
    """Return the text without its markup, and the entities in it.

    Raises:
        MarkupError: the markup is wrong.
        LookupError: there is no such mode.
    """
    readers: dict[str, Callable[[str], Reader]] = {"markdownv2": MarkdownV2, "html": Html, "markdown": Markdown}
    reader = readers[mode.lower()](text)
    reader.read()
    entities = sorted(reader.entities, key=lambda entity: (entity["offset"], -entity["length"]))
    return "".join(reader.out), entities
