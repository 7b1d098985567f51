"""Asks past turns again, by the name that release 0.8 documents."""

from botservice.reruns import Answer, CallMade, Changes, Comparison, ask_again

__all__ = ["Answer", "CallMade", "Changes", "Comparison", "ask_again"]
