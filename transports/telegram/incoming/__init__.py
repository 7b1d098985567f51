"""What Telegram delivers: taken in, stored, read."""
