"""What Bolt does to logging stays its own."""

import logging

from standins.slack_api import SlackApi


async def test_the_service_s_own_log_lines_are_not_silenced(api: SlackApi, bot_on) -> None:
    ours = [logging.getLogger("botservice"), logging.getLogger("transports")]
    before = [(each.level, each.disabled, each.propagate) for each in ours]
    async with bot_on(api):
        assert [(each.level, each.disabled, each.propagate) for each in ours] == before
