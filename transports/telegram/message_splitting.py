"""The splitting of an answer into messages that Telegram takes: none is too long, and none shows nothing."""

from collections.abc import Iterable, Sequence
from typing import Final

from botservice.core.formatted_text import Blocks, FormattedText, Paragraph, Span
from botservice.core.messages import Moment, storable
from transports.common.too_long_messages import MAX_CHARACTERS
from transports.markdown.reading import read_whole
from transports.markdown.splitting import in_pieces
from transports.telegram.formatting import Rich, render_blocks, units

# Source: core.telegram.org/bots/api, sendMessage; an entity beyond the hundredth is silently dropped.
MAX_TEXT_UNITS: Final = 4096
MAX_CAPTION_UNITS: Final = 1024
MAX_ENTITIES: Final = 100
_BLANKS: Final = " \n\t\u00a0\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2800\u3164\ufeff"


def format_markdown(markdown: str, *, max_units: int = MAX_TEXT_UNITS, moments: Sequence[Moment] = ()) -> list[Rich]:
    """Return the messages that markdown makes, in order; none if there is nothing to read."""
    if not markdown.strip(_BLANKS):
        return []
    written = storable(markdown)
    pieces = format_blocks(read_whole(written), max_units=max_units, moments=moments)
    # Markup without words stays as it is.
    return pieces or format_blocks((Paragraph((Span(written),)),), max_units=max_units)


def format_formatted(
    text: FormattedText, *, max_units: int = MAX_TEXT_UNITS, moments: Sequence[Moment] = ()
) -> list[Rich]:
    """Return the messages that a formatted text makes, in order; of a very long one those of its beginning."""
    return format_blocks(next(in_pieces(text.blocks, MAX_CHARACTERS), ()), max_units=max_units, moments=moments)


def format_blocks(blocks: Blocks, *, max_units: int = MAX_TEXT_UNITS, moments: Sequence[Moment] = ()) -> list[Rich]:
    """Return the messages that a tree makes, in order, without those that would show nothing: they are refused."""

    def size(each: Blocks) -> int:
        shown = render_blocks(each, moments)
        return max(units(shown.text), len(shown.entities) * max_units // MAX_ENTITIES)

    whole = render_blocks(blocks, moments)
    if units(whole.text) <= max_units and len(whole.entities) <= MAX_ENTITIES:
        pieces: Iterable[Rich] = [whole]
    else:
        pieces = (render_blocks(each, moments) for each in in_pieces(blocks, max_units, size))
    return [each for each in pieces if each.text.strip(_BLANKS)]
