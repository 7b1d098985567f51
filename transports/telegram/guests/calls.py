"""The two calls of a guest, and what their refusals mean."""

from collections.abc import Mapping
from typing import Any, Final

from telegram.error import BadRequest, Forbidden, InvalidToken, TelegramError

from transports.telegram.client import BotClient

_RESULT_ID: Final = "answer"
_TITLE: Final = "…"  # every result has one; nobody sees it


async def post(client: BotClient, query_id: str, said: Mapping[str, Any]) -> str:
    """Have a guest's message appear and return its id; a question takes one.

    Raises:
        telegram.error.TelegramError: it was refused, or no answer came.
    """
    content = {"message_text": said["text"], "link_preview_options": {"is_disabled": True}}
    if said.get("entities"):
        content["entities"] = said["entities"]
    result = {"type": "article", "id": _RESULT_ID, "title": _TITLE, "input_message_content": content}
    sent = await client.call("answerGuestQuery", guest_query_id=query_id, result=result)
    return str(sent["inline_message_id"])


async def change(client: BotClient, inline_message_id: str, said: Mapping[str, Any]) -> None:
    """Have a guest's message say something else. It may be done again: then nothing changes.

    Raises:
        telegram.error.TelegramError: it was refused, or no answer came.
    """
    entities = said.get("entities") or None
    await client.call("editMessageText", inline_message_id=inline_message_id, text=said["text"], entities=entities)


def is_closed(error: TelegramError) -> bool:
    """Return whether nothing can be said there any more, or ever.

    Of a method that a server does not know, the client says what it says of a token that is refused.
    """
    return isinstance(error, BadRequest | Forbidden | InvalidToken)
