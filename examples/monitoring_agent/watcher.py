"""The agent that watches: its tools, what counts the failures, and its model where there is no real one."""

import json
import os
from typing import Any

import httpx

from botservice import (
    ActionStep,
    AgentRun,
    AgentService,
    ChatLLM,
    FunctionsBasedAgent,
    OpenAIChatLLM,
    ScriptedChatLLM,
    Storage,
    Tool,
    ToolCall,
    tool,
)

STEPS_IN_VIEW = 10
FAILURES_FOR_ALERT = 3
PROMPT = (
    "You watch a web application. Check its health again and again, one check at a time. When an ALERT is raised, read "
    "its log, restart it and check once more. Then say in two sentences what happened."
)
TASK = "Watch the application until you know that it is well."


def make_service(storage: Storage, address: str) -> AgentService:
    """Return the service that watches the application at address."""
    agent = FunctionsBasedAgent(tools=make_tools(address), llm=choose_llm(), prompt=PROMPT, memory_keys=["failures"])
    return AgentService(agent=agent, storage=storage, max_steps=15, step_callbacks=[count_failures])


def make_tools(address: str) -> list[Tool]:
    """Return what the agent can do with the application at address."""

    async def request(method: str, path: str) -> str:
        async with httpx.AsyncClient(base_url=address, timeout=5, trust_env=False) as client:
            response = await client.request(method, path)
        return f"{response.status_code} {response.text}"

    @tool(idempotent=True)
    async def check_health() -> str:
        """Check whether the application is well."""
        return await request("GET", "/health")

    @tool(idempotent=True)
    async def read_log() -> str:
        """Read the newest lines of the application's log."""
        return await request("GET", "/log")

    @tool
    async def restart() -> str:
        """Restart the application."""
        return await request("POST", "/restart")

    return [check_health, read_log, restart]


def count_failures(step: ActionStep, agent: AgentRun) -> None:
    """Count the failed checks of the last ten steps; append an alert to the observation where there are many."""
    recent = [each for each in agent.memory.steps if isinstance(each, ActionStep)][-STEPS_IN_VIEW:]
    step.failures = sum(1 for each in recent if (each.observations or "").startswith("503"))
    if step.failures >= FAILURES_FOR_ALERT and (step.observations or "").startswith("503"):
        step.observations = (
            f"{step.observations}\nALERT: {step.failures} of the last {STEPS_IN_VIEW} steps failed their health check"
        )


def choose_llm() -> ChatLLM:
    """Return a real model where one is set, else a script that goes by what the prompt shows."""
    if os.environ.get("OPENAI_API_KEY") or os.environ.get("OPENAI_BASE_URL"):
        return OpenAIChatLLM()
    return ScriptedChatLLM(say_what_is_next)


def say_what_is_next(prompt: list[dict[str, Any]]) -> ToolCall | str:
    """Return what a sensible model would do."""
    since_task = prompt[
        max(place for place, message in enumerate(prompt) if message["role"] == "user" and _is_task(message)) :
    ]
    called = [call["function"]["name"] for message in since_task for call in message.get("tool_calls") or ()]
    alerted = any("ALERT" in str(message["content"]) for message in since_task if message["role"] == "tool")
    if "restart" in called:
        if called[-1] == "restart":
            return ToolCall("", "check_health", {})
        earlier = " It had been down before: I was told so." if "down for 2 hours" in json.dumps(prompt) else ""
        return f"The application ran out of connections and failed its checks. I restarted it; it is well now.{earlier}"
    if alerted:
        return ToolCall("", "read_log" if "read_log" not in called else "restart", {})
    return ToolCall("", "check_health", {})


def _is_task(message: dict[str, Any]) -> bool:
    return not str(message["content"]).startswith(("Observation", "Notes", "New task"))
