"""Documents that a team gave the bot to read: adding them, finding passages, quoting them in answers."""
