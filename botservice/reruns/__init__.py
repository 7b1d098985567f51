"""Asking the model again from the record of a past turn, with another prompt, model or memory."""

from botservice.reruns.answers import Answer, CallMade, Comparison
from botservice.reruns.asking_again import ask_again
from botservice.reruns.changed_conditions import Changes

__all__ = ["Answer", "CallMade", "Changes", "Comparison", "ask_again"]
