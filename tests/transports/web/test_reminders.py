"""Reminders in the browser: an open page gets them, and one that opens later finds them."""

from botservice import ToolCall
from botservice.agent.reminding import REMINDER_TOOLS


def script(prompt):
    """Set a reminder for a moment later."""
    if prompt[-1]["role"] == "tool":
        return "I will."
    return ToolCall("1", "remind_me", {"text": "Tea is ready", "in_minutes": 0.01})


async def test_an_open_page_is_told_when_it_is_due(run_site):
    async with run_site(script, tools=REMINDER_TOOLS) as site:
        visitor = await site.visitor()
        async with visitor.events() as events:
            await visitor.say("remind me")
            await events.until("message", lambda data: data["text"] == "⏰ Tea is ready")
        async with visitor.events() as events:
            await events.until_idle()
            assert events.texts == ["remind me", "I will.", "⏰ Tea is ready"]
            assert not events.of("notice"), "it is in the conversation, and shown once"
