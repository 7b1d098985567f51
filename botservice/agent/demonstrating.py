"""The tool with which the demo shows how a person is asked before something is done."""

from botservice.agent.tool import tool

_MOST_CUPS = 12


@tool(needs_approval=True, idempotent=True)
async def order_tea(cups: int = 1) -> str:
    """Order tea, in the demo only: nothing is ordered in truth.

    Args:
        cups: How many cups, from 1 to 12.
    """
    if not 1 <= cups <= _MOST_CUPS:
        raise ValueError(f"from 1 to {_MOST_CUPS} cups can be ordered, not {cups}")
    return f"{cups} {'cup' if cups == 1 else 'cups'} of tea: ordered, because you allowed it (in this demo only)."
