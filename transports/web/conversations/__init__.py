"""What a person has in the browser: their conversations, and what they think and ask of answers."""
