"""The forms in which a text can be sent, each simpler than the one before."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transports.slack.blocks import markdown
from transports.slack.outgoing.figures import Figure, as_blocks, drawn, in_words
from transports.slack.workspaces.refusals import Feature


@dataclass(frozen=True, slots=True)
class Form:
    """A text as it is sent.

    Attributes:
        needs: What Slack has to draw for it.
    """

    parameters: dict[str, Any]
    needs: frozenset[Feature] = frozenset()


def forms_of(
    text: str, figures: Sequence[Figure], below: Sequence[dict[str, Any]], *, has_blocks: bool = False
) -> list[Form]:
    """Return the forms of a text: with its figures drawn, with blocks, as markdown, as plain text.

    Args:
        below: The blocks that stand under it, such as buttons.
        has_blocks: Whether what it replaces keeps its blocks unless it gets new ones.
    """
    words, needs = in_words(text, figures), drawn(figures)
    forms = [Form({"markdown_text": words}), Form({"text": words})]
    if below or has_blocks:
        forms.insert(0, Form({"text": words, "blocks": [markdown(words), *below]}))
    if needs:
        forms.insert(0, Form({"text": words, "blocks": [*as_blocks(text, figures), *below]}, needs))
    return forms


def suspect(needs: frozenset[Feature]) -> Feature:
    """Return what to blame where a form was refused: the rarest of what it needs."""
    return Feature.CHARTS if Feature.CHARTS in needs else Feature.TABLES
