"""What is seen of a choice under the message that offered it."""

import html
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from botservice.core.errors import BotServiceError
from transports.slack.client import SlackClient, SlackFailure
from transports.slack.figures import markdown, read_page
from transports.slack.formatting import BUTTON, find_address
from transports.slack.inbound_events import field, items_of
from transports.slack.rich_text import escape_words
from transports.slack.workspaces import Workspaces

logger = logging.getLogger(__name__)

_CHOSEN: Final = "✓"
_OF_WORDS: Final = ("data_table", "data_visualization", "header", "markdown", "rich_text", "section", "table")


@dataclass(frozen=True, slots=True)
class SlackChoice:
    """A message with buttons of which a person has pressed one.

    Attributes:
        message: As Slack shows it to whoever presses.
        pressed: The name of the button.
    """

    team: str
    channel: str
    ts: str
    message: Mapping[str, Any]
    pressed: str


class SlackChoices:
    """Shows choices in the place of the buttons."""

    def __init__(self, client: SlackClient, workspaces: Workspaces, *, previews: bool) -> None:
        self._client = client
        self._workspaces = workspaces
        self._previews = previews

    async def show(self, choice: SlackChoice) -> None:
        """Show a choice; nothing depends on it."""
        label = _label_of(choice)
        if label is None:
            return  # it is shown already
        text = str(field(choice.message, "text") or "")
        if not self._previews and _has_address(choice.message):
            return  # only chat.postMessage can be told to fetch nothing
        forms = (
            {"text": text or label, "blocks": _blocks(choice, text, label)},
            {"text": f"{text}\n\n{escape_words(label)}"},
        )
        try:
            token = (await self._workspaces.find(choice.team)).token
            for form in forms:
                try:
                    await self._client.call(token, "chat.update", channel=choice.channel, ts=choice.ts, **form)
                except SlackFailure as failure:
                    if not failure.is_about_form or form is forms[-1]:
                        raise
                else:
                    return
        except BotServiceError as error:
            logger.info("slack.choice_not_shown", extra={"reason": str(error)})


def _has_address(message: Mapping[str, Any]) -> bool:
    words = [field(message, "text"), *(field(block, "text") for block in items_of(message, "blocks"))]
    return any(find_address(html.unescape(str(each))) is not None for each in words)


def _label_of(choice: SlackChoice) -> str | None:
    """Return what is shown of the pressed button, or None if it is not there any more."""
    buttons = [each for block in items_of(choice.message, "blocks") for each in items_of(block, "elements")]
    pressed = next((each for each in buttons if field(each, "action_id") == choice.pressed), None)
    return None if pressed is None else f"{_CHOSEN} {field(pressed, 'text', 'text') or ''}".rstrip()


def _blocks(choice: SlackChoice, text: str, label: str) -> list[dict[str, Any]]:
    """Return the blocks of a message with a choice in the place of its buttons; links stay."""
    blocks: list[dict[str, Any]] = []
    for block in items_of(choice.message, "blocks"):
        buttons = [each for each in items_of(block, "elements") if _is_ours(each)]
        if not buttons:
            blocks.append(block)
            continue
        blocks.append({"type": "section", "text": {"type": "plain_text", "text": label}})
        if links := [each for each in buttons if field(each, "url")]:
            blocks.append({"type": "actions", "elements": links})
    has_words = any(field(each, "type") in _OF_WORDS for each in items_of(choice.message, "blocks"))
    if text and not has_words:  # they stand beside the blocks, and new blocks would hide them
        blocks.insert(0, markdown(read_page(html.unescape(text)).text))
    return blocks


def _is_ours(element: object) -> bool:
    return str(field(element, "action_id") or "").startswith(f"{BUTTON}:")
