"""Screenshots are expensive: a ready-made callback keeps those of the newest two steps."""

import asyncio
import struct
import zlib

from example_llm import choose_llm

from botservice import (
    ActionStep,
    AgentContext,
    AgentService,
    Attachment,
    FunctionsBasedAgent,
    Storage,
    ToolCall,
    forget_old_images,
    tool,
)


def draw(grey: int) -> bytes:
    """Return a PNG of one grey square."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\x00" + bytes([grey] * 8) for _ in range(8))
    header = struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@tool
async def take_screenshot(number: int) -> Attachment:
    """Take a screenshot."""
    return Attachment("image/png", f"screen{number}.png", data=draw(60 * number))


SCRIPT = [*(ToolCall("", "take_screenshot", {"number": number}) for number in range(1, 5)), "It gets brighter."]


async def main() -> None:
    agent = FunctionsBasedAgent(tools=[take_screenshot], llm=choose_llm(SCRIPT))
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        service = AgentService(agent=agent, storage=storage, step_callbacks=[forget_old_images])
        await service.prompt(context, "Take screenshots 1 to 4, one after the other. What changes?")
        for step in context.memory.steps:
            if isinstance(step, ActionStep):
                print("step", step.step_number, "images:", len(step.observations_images or ()))


asyncio.run(main())
