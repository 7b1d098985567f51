"""Agents: what to do next, as a function of what is stored."""

from botservice.agents.agent import Action, Agent, FinishAction, Plan
from botservice.agents.functions_based import FunctionsBasedAgent
from botservice.agents.prompt import Prompt

__all__ = ["Action", "Agent", "FinishAction", "FunctionsBasedAgent", "Plan", "Prompt"]
