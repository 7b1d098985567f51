"""The stand-in refuses of rich and personal messages what the Bot API does."""

from typing import Any

import pytest
from bot_api.bot_clients import Refusal
from standins.bot_api import BotApi
from telegram import Bot

WORDS = {"type": "paragraph", "text": "words"}


def send(bot: Bot, blocks: Any, *, method: str = "sendRichMessage", **more: Any) -> Any:
    return bot.do_api_request(method, api_kwargs={"chat_id": 42, "rich_message": {"blocks": blocks}, **more})


async def test_blocks_are_shown_and_a_text_becomes_rich_and_plain_again(api: BotApi, bot: Bot) -> None:
    sent = await bot.send_message(42, "plain")
    place = {"chat_id": 42, "message_id": sent.message_id}
    await bot._post("editMessageText", {**place, "rich_message": {"blocks": [WORDS]}})  # the library knows no such edit
    assert [(each.kind, each.text) for each in api.visible_messages(42)] == [("rich_message", "words")]
    await bot.edit_message_text("plain again", 42, sent.message_id)
    assert [(each.kind, each.text) for each in api.visible_messages(42)] == [("text", "plain again")]


@pytest.mark.parametrize(
    ("blocks", "reason"),
    [
        ([], "RICH_MESSAGE_CONTENT_REQUIRED"),
        ([{"type": "sectionHeading", "text": "x"}], 'type "sectionHeading" is unsupported'),
        ([{"type": "thinking", "text": "x"}], 'type "thinking" is unsupported'),
        ([{"type": "table", "rows": []}], 'Can\'t find field "cells"'),
        ([{"type": "paragraph", "text": {"type": "plain", "text": "x"}}], "Unsupported rich text type"),
        ([WORDS] * 501, "RICH_MESSAGE_BLOCKS_TOO_MANY"),
        ([{"type": "paragraph", "text": "x" * 32_769}], "RICH_MESSAGE_TEXT_TOO_LONG"),
    ],
)
async def test_what_is_no_rich_message_is_refused(bot: Bot, refusal: Refusal, blocks: Any, reason: str) -> None:
    assert reason in await refusal(send(bot, blocks))


async def test_thoughts_stand_in_drafts_alone(api: BotApi, bot: Bot) -> None:
    thought = {"type": "thinking", "text": "looking"}
    assert await send(bot, [thought], method="sendRichMessageDraft", draft_id=7)
    draft = api.visible_draft(42)
    assert draft is not None
    assert draft.text == "looking"


async def test_one_member_alone_is_written_to_by_administrators_and_at_once_after_a_press(
    api: BotApi, bot: Bot, refusal: Refusal
) -> None:
    api.add_group(-1001)
    api.person_says("hello", chat_id=-1001, user=1001)
    whom = {"ephemeral_message_parameters": {"receiver_user_id": 1001}}
    assert await refusal(bot.send_message(-1001, "x", api_kwargs=whom)) == "CHAT_ADMIN_REQUIRED"
    api.world.chats[-1001].bot_status = "administrator"
    sent = await bot.send_message(-1001, "x", api_kwargs=whom)
    assert sent.message_id == 0
    assert sent.api_kwargs["ephemeral_message_id"]
    assert api.visible_texts(-1001) == []
