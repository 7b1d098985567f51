"""Reminders: messages to a chat, or tasks for the agent, at a later time."""

from botservice.reminders.reminder import Reminder, ReminderStatus, Repeats

__all__ = ["Reminder", "ReminderStatus", "Repeats"]
