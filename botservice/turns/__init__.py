"""The life of a turn: accepted, claimed, run, answered, delivered."""

from botservice.turns.retry_policies import RetryPolicy
from botservice.turns.run.agent_run import AgentRun

__all__ = ["AgentRun", "RetryPolicy"]
