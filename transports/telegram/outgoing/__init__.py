"""What Telegram shows: planned, cut, formatted, sent."""
