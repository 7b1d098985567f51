"""Reminders where Telegram shows them: in the chat and the topic that they are for."""

from standins.bot_api import BotApi
from standins.clocks import fast_clock

from botservice import ToolCall
from botservice.agent.reminding import REMINDER_TOOLS

GROUP = -1001000000001


def script(prompt):
    """Set a reminder for whatever is asked: at once for tea, for tomorrow otherwise."""
    last = prompt[-1]
    if last["role"] == "tool":
        return "I will."
    when = {"in_minutes": 0.01} if "tea" in last["content"] else {"in_days": 1}
    return ToolCall("1", "remind_me", {"text": "Tea is *ready*", **when})


async def test_a_reminder_comes_in_the_topic_in_which_it_was_asked_for(api: BotApi, bot_on) -> None:
    api.add_group(GROUP, is_forum=True)
    topic = api.add_topic(GROUP, "Tea")
    async with bot_on(api, script, tools=REMINDER_TOOLS, clock=fast_clock()):
        api.person_says(f"@{api.username} tea", chat_id=GROUP, thread_id=topic, user=1001)
        shown = await api.message(GROUP, "⏰ Tea is ready")
    assert shown.thread_id == topic
    assert shown.reply_to is None


async def test_a_reminder_is_cancelled_with_its_button(api: BotApi, bot_on) -> None:
    async with bot_on(api, script, tools=REMINDER_TOOLS):
        api.person_says("remind me", chat_id=42)
        await api.message(42, "I will.")
        api.person_says("/reminders", chat_id=42)
        listed = await api.message(42, "Tea is")
        (button,) = (each for row in listed.buttons for each in row)
        assert button["text"] == "Cancel 1"
        api.person_presses(42, listed.message_id, button["callback_data"])
        await api.message(42, "Cancelled: Tea is *ready*")
        api.person_says("/reminders", chat_id=42)
        await api.message(42, "No reminders")
