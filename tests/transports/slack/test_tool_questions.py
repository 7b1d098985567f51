"""Questions of a tool in a Slack channel: only the person who is asked answers, with a button or with words."""

import pytest
from standins.questions import Hotel, receptionist
from standins.slack_api import BOT_USER, SlackApi

from tests.transports.slack.test_approval import asked, elements


@pytest.mark.parametrize("way", ["http", "socket"])
async def test_in_a_channel_only_the_asker_answers_and_the_call_goes_on_once(
    api: SlackApi, bot_on_both, way: str
) -> None:
    hotel = Hotel()

    async def says(text: str, user: str, answer: str | None = None) -> None:
        api.person_says(f"<@{BOT_USER}> {text}", channel="C0GENERAL", thread_ts=ts, user=user)
        if answer is not None:
            await api.until(lambda: any(answer in each for each in api.said("C0GENERAL")))

    async with bot_on_both(api, receptionist, tools=hotel.tools, way=way):
        ts = api.person_says(f"<@{BOT_USER}> reserve", channel="C0GENERAL")
        question = await asked(api, "C0GENERAL")
        offered = elements(question)
        assert [*offered] == ["Single", "Double", "Decline"]
        for count, label in enumerate(("Double", "Decline"), 1):
            api.press(question, offered[label], user="U0BOB")
            await api.until(lambda: len(api.world.responses) == count)  # noqa: B023 - awaited here
            _, body = api.world.responses[-1]
            assert body["text"] == "Diese Buttons sind nur für die Person, die gefragt hat."
            assert body["response_type"] == "ephemeral"
        await says("Double", "U0BOB", "Double")
        assert [*elements(question)] == ["Single", "Double", "Decline"]
        api.press(question, offered["Double"])
        await api.until(lambda: "Name (2/2)" in api.said("C0GENERAL")[-1])
        await says("Bob", "U0BOB", "Bob: Bob")
        await says("Alice", "U0ALICE", "Read: booked")
    assert hotel.booked == [{"size": "Double", "name": "Alice"}]
