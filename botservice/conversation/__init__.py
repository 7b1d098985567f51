"""One conversation: its context, an agent's memory of its own work, prompt records, and reminders."""
