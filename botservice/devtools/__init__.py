"""For whoever makes a bot: asking again from the record, evaluation, and what the inspector shows."""
