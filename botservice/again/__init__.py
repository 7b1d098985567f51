"""Asking the model again from the record of a past turn, with another prompt, model or memory."""

from botservice.again.answers import Answer, CallMade, Comparison
from botservice.again.asking_again import ask_again
from botservice.again.changed_conditions import Changes

__all__ = ["Answer", "CallMade", "Changes", "Comparison", "ask_again"]
