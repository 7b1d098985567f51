"""Answers in chats that the bot is no member of: a stub at once, and the answer in its place (Bot API 10.0)."""
