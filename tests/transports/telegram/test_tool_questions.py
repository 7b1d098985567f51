"""Questions of a tool in a Telegram group: only the person who is asked answers, with a button or with words."""

from standins.bot_api import BotApi, Person
from standins.questions import Hotel, receptionist

from tests.transports.telegram.test_approval import labels, press, told

GROUP = -1001000000001
ANNA = Person(1001, first_name="Anna")
BERTA = Person(1002, first_name="Berta", language_code="de")


async def test_in_a_group_only_the_asker_answers_and_the_call_goes_on_once(api: BotApi, bot_on_both) -> None:
    hotel = Hotel()
    api.add_group(GROUP)
    async with bot_on_both(api, receptionist, tools=hotel.tools):
        asked = api.person_says(f"@{api.username} reserve", chat_id=GROUP, user=ANNA)
        question = await api.message(GROUP, "Room")
        assert question.reply_to == asked.message_id
        assert labels(question) == ["Single", "Double", "Decline"]
        for label in ("Double", "Decline"):
            query = press(api, question, label, user=BERTA)
            assert await told(api, query) == "Diese Buttons sind nur für die Person, die gefragt hat."
        api.person_says(f"@{api.username} Double", chat_id=GROUP, user=BERTA)
        await api.message(GROUP, "Double", after=question.message_id)
        reply = api.person_says("Single", chat_id=GROUP, user=BERTA, reply_to=question.message_id)
        await api.message(GROUP, "Single", after=reply.message_id)
        assert labels(api.seen(GROUP, question.message_id)) == ["Single", "Double", "Decline"]
        press(api, question, "Double", user=ANNA)
        named = await api.message(GROUP, "Name (2/2)")
        other = api.person_says("Berta", chat_id=GROUP, user=BERTA, reply_to=named.message_id)
        await api.message(GROUP, "Berta", after=other.message_id)
        api.person_says("Anna", chat_id=GROUP, user=ANNA, reply_to=named.message_id)
        await api.message(GROUP, "Read: booked")
    assert hotel.booked == [{"size": "Double", "name": "Anna"}]
