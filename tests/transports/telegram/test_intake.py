"""Updates come in: by polling and by webhook, stored before Telegram is told so, once each."""

import pytest
from standins.bot_api import BotApi, UpdateConfirmed, UpdatesThrownAway


@pytest.mark.parametrize("webhook", [False, True])
async def test_a_message_is_answered(api: BotApi, bot_on, webhook: bool) -> None:
    async with bot_on(api, webhook=webhook):
        said = api.person_says("hello", chat_id=42)
        answer = await api.message(42, after=said.message_id)
        assert answer.text == "You said: hello"
        await api.until(lambda: api.journal.entries(UpdateConfirmed))
    assert not api.journal.entries(UpdatesThrownAway)
