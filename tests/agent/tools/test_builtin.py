"""The tools that every agent may have."""

import re

import pytest

from botservice import AgentContext
from botservice.agent.tool_catalogue import current_time


@pytest.mark.parametrize("timezone", ["UTC", "Europe/Madrid", "Asia/Seoul"])
async def test_the_time_is_told_where_it_is_asked_for(context: AgentContext, timezone: str) -> None:
    assert re.fullmatch(r"\w+, \d{4}-\d\d-\d\d \d\d:\d\d \w+", await current_time(context, timezone))


@pytest.mark.parametrize("timezone", ["", "Madrid", "America", "../../etc/passwd", "/etc/localtime", "x" * 5_000, "\0"])
async def test_what_is_no_time_zone_is_said_with_the_time_of_utc(context: AgentContext, timezone: str) -> None:
    assert re.search(r"There is no time zone .* In UTC it is \w+, \d{4}", await current_time(context, timezone))
