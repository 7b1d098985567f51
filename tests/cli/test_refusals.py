"""`botservice doctor` says what other processes have learned that models refuse, and forgets it where asked to."""

import asyncio
import os
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from botservice import Storage
from botservice.agent.shared_refusals import SharedRefusals
from botservice.llm.server_limits import ServerLimits, Wire

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def learned(run: Run) -> None:
    """Another process has learned something."""
    run("migrate")
    limits = ServerLimits(Wire.CHAT, is_wire_fixed=True, base_url="http://127.0.0.1:1/v1", model="tiny")
    limits.refuse({"image": "400 image not support", "stream_options": None})

    async def store() -> None:
        async with Storage.open(os.environ["DATABASE_URL"]) as storage:
            await SharedRefusals(SimpleNamespace(llms=[SimpleNamespace(limits=limits)])).store(storage)

    asyncio.run(store())


@pytest.mark.usefixtures("learned")
def test_doctor_says_what_another_process_has_learned(run: Run) -> None:
    _, said, _ = run("doctor")
    (line,) = [each for each in said.splitlines() if " refused " in each]
    assert line.startswith("✓ refused    tiny of http://127.0.0.1:1/v1: image until 20")
    assert "tiny of http://127.0.0.1:1/v1: stream_options until 20" in line
    assert line.endswith("`botservice doctor --forget-refusals` has them tried again")


@pytest.mark.usefixtures("learned")
def test_doctor_forgets_it_where_asked_to(run: Run) -> None:
    _, said, _ = run("doctor", "--forget-refusals")
    assert said.startswith("Forgotten: 2. Processes that run know it within a minute.")
    assert "· refused    no model is known to refuse anything" in said
