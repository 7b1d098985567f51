"""What a pause on Telegram covers: a whole group with its topics, or one topic, by where the command stands."""

import pytest
from standins.bot_api import BotApi
from standins.bot_api.chats import Person

from botservice import AgentContext, Storage
from botservice.conversation.pausing import Pause, set_pause
from botservice.people.access import Access
from botservice.texts import in_language

GROUP = -1001000000001
ANN, EVE = Person(42, "Ann"), Person(44, "Eve")
OWNED = Access(owners=frozenset({"telegram:42"}))
PAUSED, RESUMED = in_language("pause.done", "en"), in_language("resume.done", "en")

pytestmark = pytest.mark.any_database


@pytest.fixture
def forum(api: BotApi) -> BotApi:
    """A group with two topics, where Ann owns the bot."""
    api.add_group(GROUP, members=(ANN, EVE), topics={7: "Plans", 8: "Lunch"})
    return api


def say(api: BotApi, text: str, user: Person, topic: int | None = None) -> None:
    api.person_says(text, chat_id=GROUP, user=user, thread_id=topic)


async def answer(api: BotApi, number: int) -> str:
    """Return an answer as soon as there are so many."""
    await api.until(lambda: len(api.visible_texts(GROUP)) >= number)
    return api.visible_texts(GROUP)[number - 1]


async def begin_pause(storage: Storage, *, is_whole: bool) -> None:
    """Pause the group from elsewhere."""
    chat = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(GROUP)})
    pause = Pause(storage.now(), is_whole=is_whole)
    await storage.write(lambda connection: set_pause(connection, chat.id, pause))


async def test_a_pause_in_a_topic_is_for_it_alone_and_one_outside_is_for_all(forum: BotApi, bot_on_both):
    async with bot_on_both(forum, access=OWNED):
        say(forum, "/pause", ANN, topic=7)
        assert (await answer(forum, 1)).endswith(in_language("pause.only_here", "en"))
        say(forum, f"@{forum.username} plans?", EVE, topic=7)
        say(forum, f"@{forum.username} lunch?", EVE, topic=8)
        assert await answer(forum, 2) == "You said: lunch?"
        say(forum, "/pause", ANN)
        assert await answer(forum, 3) == PAUSED
        say(forum, f"@{forum.username} lunch now?", EVE, topic=8)
        say(forum, "/resume", ANN, topic=8)
        assert await answer(forum, 4) == in_language("resume.elsewhere", "en")
        say(forum, "/resume", ANN)
        assert await answer(forum, 5) == RESUMED
        say(forum, f"@{forum.username} at last?", EVE, topic=8)
        assert await answer(forum, 6) == "You said: at last?"
        say(forum, "/resume", ANN, topic=7)
        assert await answer(forum, 7) == RESUMED, "its own pause lasted longer"


async def test_of_a_pause_that_was_begun_elsewhere_a_group_is_told_once_with_all_of_its_topics(
    forum: BotApi, bot_on_both, storage: Storage
):
    await begin_pause(storage, is_whole=True)
    async with bot_on_both(forum, access=OWNED):
        say(forum, f"@{forum.username} hello", EVE, 7)
        assert await answer(forum, 1) == in_language("pause.told", "en")
        for topic in (7, 8, None):
            say(forum, f"@{forum.username} hello", EVE, topic)
        say(forum, "/resume", ANN)
        assert await answer(forum, 2) == RESUMED


async def test_a_pause_of_the_agents_own_in_a_group_leaves_its_topics_alone(
    forum: BotApi, bot_on_both, storage: Storage
):
    await begin_pause(storage, is_whole=False)
    async with bot_on_both(forum, access=OWNED):
        say(forum, f"@{forum.username} hello", EVE, 7)
        assert await answer(forum, 1) == "You said: hello"
