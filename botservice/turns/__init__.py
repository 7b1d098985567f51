"""The life of a turn: accepted, claimed, run, answered, delivered."""

from botservice.turns.agent_run import AgentRun
from botservice.turns.retry_policies import RetryPolicy

__all__ = ["AgentRun", "RetryPolicy"]
