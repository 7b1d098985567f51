"""The life of a turn: accepted, claimed, run, answered, delivered."""

from botservice.turns.run import AgentRun

__all__ = ["AgentRun"]
