"""Telegram: the only folder that imports python-telegram-bot."""
