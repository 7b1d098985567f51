"""Records with whatever fields they are given, and a step class of one's own."""

from botservice import AgentMemory, Memory, MemoryItem, MemoryStep


class HealthCheck(MemoryStep, kind="example_health_check"):
    """A step with fields of its own: the first is required, the others have defaults."""

    url: str
    status: int | None = None


def main() -> None:
    memory = Memory()
    memory.add_memory_item(MemoryItem(step=1, action="click", control_text="Submit", cost=0.002))
    memory.add_memory_item(MemoryItem(step=2, action="type", arguments={"text": "hello"}, cost=0.001))
    memory.add_memory_item(MemoryItem(note="an item without a step"))

    item = memory.content[0]
    item.set_value("results", ["Button clicked"])
    print(item.attributes, item.get_value("cost"), item.get_value("missing"), item.filter(["action", "missing"]))
    print(memory.filter_memory_from_keys(["step", "action"]))
    print(memory.filter_memory_from_steps([2]))
    print("total cost:", sum(each.get_value("cost") or 0 for each in memory.content))

    memory.delete_memory_item(1)
    latest = memory.get_latest_item()
    print(memory.length, memory.is_empty(), latest.to_dict() if latest else None)

    agent_memory = AgentMemory("You watch.", [HealthCheck("http://localhost", status=200, mood="calm")])
    again = AgentMemory.from_json(agent_memory.to_json())
    print(again == agent_memory, type(again.steps[0]).__name__, again.steps[0])


main()
