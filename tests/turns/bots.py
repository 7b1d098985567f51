"""Small bots for the tests of runs."""

from datetime import UTC, datetime, timedelta

from standins.tools import add

from botservice import AgentService, FunctionsBasedAgent, NoMessages, RetryPolicy, ScriptedChatLLM, ToolCall, tool
from botservice.core.states import PendingKind, PendingStatus
from botservice.turns.waiting_calls import WaitingCall

NO_WAITING = RetryPolicy(max_attempts=3, first_delay_seconds=0.0, max_delay_seconds=0.0, total_seconds=5.0)


@tool
async def fail() -> str:
    """Fail."""
    raise ValueError("it broke")


def call(name, call_id="", /, **arguments):
    """Return a model's wish to call a tool."""
    return ToolCall(call_id, name, arguments)


def waiting_call(number=7, tool="pay", *, asked_at=datetime(2026, 11, 20, 12, tzinfo=UTC), **values):
    """Return a call that waits for an approval, with other values where some are given."""
    call = {
        "id": number,
        "context_id": 1,
        "turn_id": 5,
        "step_id": 1,
        "call_index": 0,
        "call_id": "1",
        "tool": tool,
        "name": None,
        "kind": PendingKind.APPROVAL,
        "status": PendingStatus.WAITING,
        "is_open": True,
        "transport": "web",
        "author": None,
        "delivery_id": None,
        "created_at": asked_at,
        "expires_at": asked_at + timedelta(hours=1),
        "decided_at": None,
        "decided_by": None,
    }
    return WaitingCall(**call | values)


def counting(calls, answer="done"):
    """Return a script of so many steps and an answer."""
    return [*(call("add", a=number, b=1) for number in range(1, calls + 1)), answer]


def make_service(storage, script, *, tools=(add, fail), max_steps=10, callbacks=None, clock=None, **agent_options):
    """Return a service with a model, or one that follows a script, and that model."""
    llm = script if hasattr(script, "chat") else ScriptedChatLLM(script)
    options = {"search_k": 0, "message_selector": NoMessages(), "prompt": "You are X", **agent_options}
    agent = FunctionsBasedAgent(tools=tools, llm=llm, **options)
    service = AgentService(
        agent=agent,
        storage=storage,
        max_steps=max_steps,
        step_callbacks=callbacks,
        clock=clock,
        model_retries=NO_WAITING,
    )
    return service, llm


def without_ids(prompt):
    """Return a prompt in short: role and text, or role and the names that it calls."""
    short = []
    for message in prompt:
        if message.get("tool_calls"):
            short.append((message["role"], [each["function"]["name"] for each in message["tool_calls"]]))
        else:
            short.append((message["role"], message["content"]))
    return short
