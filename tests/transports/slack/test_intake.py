"""What people write comes in once, is answered once, in its place, whichever way Slack delivers it."""

import pytest
from standins.slack_api import SlackApi


@pytest.mark.parametrize("way", ["http", "socket"])
async def test_a_direct_message_is_answered(api: SlackApi, bot_on, way: str) -> None:
    async with bot_on(api, way=way):
        ts = api.person_says("hello")
        await api.until(api.said)
    assert api.said() == ["You said: hello"]
    assert api.bot_posts()[0].thread_ts == ts
