"""From what the service itself says to HTML."""

from botservice.core.formatted_text import FormattedText
from transports.web.markdown import render_blocks


def render_formatted(text: FormattedText) -> list[str]:
    """Return a formatted text as blocks of HTML in which every space is seen; no words can be an element."""
    shown = (render_blocks((each,)) for each in text.blocks)
    spaced = (each.replace("<p>", '<p class="plain">').replace("<li>", '<li class="plain">') for each in shown)
    return [each.replace("<br />\n", "<br />") for each in spaced]
