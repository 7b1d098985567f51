"""What a chat is to be told later, or what the agent is to be asked then."""

from botservice.reminders.reminder import Reminder, ReminderStatus, Repeats

__all__ = ["Reminder", "ReminderStatus", "Repeats"]
