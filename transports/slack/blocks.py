"""What the bot's messages hold besides words: feedback, buttons, its dialog, and what they are known again by."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from botservice.texts import in_language
from botservice.turns.turn import Delivery

FEEDBACK: Final = "feedback"
BUTTON: Final = "say"
ASK_CALLBACK: Final = "ask_about_message"
ASK_ANYTHING: Final = "ask_anything"
QUESTION_BLOCK: Final = "question"
QUESTION_INPUT: Final = "text"

# Source: docs.slack.dev, reference/block-kit.
_MAX_LABEL = 75
_MAX_VALUE = 2000
_MAX_BUTTONS = 25
_MAX_URL = 3000


def markdown(text: str) -> dict[str, Any]:
    """Return text as a block that takes markdown as models write it."""
    return {"type": "markdown", "text": text}


def mark_of(delivery: Delivery) -> dict[str, Any]:
    """Return the metadata by which a message is known again, also where another database counts anew."""
    name = f"{delivery.payload.get('question') or delivery.turn_id}/{delivery.id}"
    return {"event_type": "botservice_message", "event_payload": {"delivery": name}}


def feedback_buttons(turn_id: int, language: str) -> dict[str, Any]:
    """Return what stands under an answer to say whether it was any good."""

    def button(sign: str, label: str, value: str) -> dict[str, Any]:
        return {"text": {"type": "plain_text", "text": sign}, "accessibility_label": label, "value": value}

    return {
        "type": "context_actions",
        "elements": [
            {
                "type": "feedback_buttons",
                "action_id": FEEDBACK,
                "positive_button": button("👍", in_language("buttons.good", language), f"good:{turn_id}"),
                "negative_button": button("👎", in_language("buttons.bad", language), f"bad:{turn_id}"),
            }
        ],
    }


def button_row(buttons: Sequence[dict[str, Any]]) -> dict[str, Any] | None:
    """Return what may be pressed instead of typing, as a plan has it; None for nothing."""
    elements = []
    for number, each in enumerate(buttons[:_MAX_BUTTONS]):
        element: dict[str, Any] = {
            "type": "button",
            "action_id": f"{BUTTON}:{number}",
            "text": {"type": "plain_text", "text": str(each["text"])[:_MAX_LABEL] or "…"},
        }
        url, value = each.get("url"), str(each.get("value") or "")
        if url and len(url) <= _MAX_URL:
            element["url"] = url
        elif len(value) <= _MAX_VALUE:
            element["value"] = value
        else:
            continue  # half of what it would say may mean something else
        elements.append(element)
    return {"type": "actions", "elements": elements} if elements else None


def question_dialog(kept: str, language: str | None) -> dict[str, Any]:
    """Return the dialog that asks for a question.

    Args:
        kept: What stands with it of the message that it is about; "" where it is about none.
    """
    say = partial(in_language, language=language)
    return {
        "type": "modal",
        "callback_id": ASK_CALLBACK,
        "private_metadata": kept,
        "title": {"type": "plain_text", "text": say("question.title" if kept else "question.anything")},
        "submit": {"type": "plain_text", "text": say("question.submit")},
        "close": {"type": "plain_text", "text": say("question.close")},
        "blocks": [
            {
                "type": "input",
                "block_id": QUESTION_BLOCK,
                "label": {"type": "plain_text", "text": say("question.label")},
                "element": {
                    "type": "plain_text_input",
                    "action_id": QUESTION_INPUT,
                    "multiline": True,
                    "max_length": 3000,
                },
            }
        ],
    }
