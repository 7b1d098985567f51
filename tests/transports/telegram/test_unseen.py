"""What one person says to the bot alone, in a group, is said to no other person there.

People can do so by a command, and by replying to what the bot showed to them alone.
Source: core.telegram.org/bots/api#ephemeral-messages-and-commands.
"""

from typing import Any

from standins.bot_api import BotApi
from standins.bot_api.personal import PersonalShown

from botservice import Storage
from botservice.storage.tables.conversations import messages

GROUP = -1001000000001
REPLY = {"ephemeral_message_id": 7, "receiver_user": {"id": 1, "is_bot": True, "first_name": "Bot"}}


async def test_what_one_person_says_to_the_bot_alone_is_neither_answered_to_all_nor_kept_with_the_group(
    api: BotApi, bot_on: Any, sqlite_storage: Storage
) -> None:
    api.add_group(GROUP)
    api.world.chats[GROUP].bot_status = "administrator"
    async with bot_on(api) as bot:
        api.person_says(f"@{api.username} I earn 5000", chat_id=GROUP, user=1001, extra=REPLY)
        api.person_says(f"/usage@{api.username}", chat_id=GROUP, user=1001, extra={"ephemeral_message_id": 8})
        await api.until(lambda: api.journal.entries(PersonalShown))
        api.person_says(f"@{api.username} hello", chat_id=GROUP, user=1002)
        await api.message(GROUP, "You said")
        assert "5000" not in str(bot.llm.prompts)
    assert "5000" not in "".join(each.text for each in api.visible_messages(GROUP) if each.from_bot)
    rows = await sqlite_storage.read(lambda connection: connection.execute(messages.select()).all())
    assert "5000" not in str(rows)
