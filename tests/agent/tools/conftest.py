"""A context to call tools in."""

import pytest

from botservice import AgentContext, Storage


@pytest.fixture
async def context(sqlite_storage: Storage) -> AgentContext:
    return await AgentContext.get_or_create(sqlite_storage, {"transport": "test", "chat_id": "1"})
