"""What a pause in Slack covers: a whole channel with its threads, or one thread, by where the command stands."""

import pytest
from sqlalchemy import func, select
from standins.clocks import LastingMinute
from standins.slack_api import SlackApi
from standins.slack_api.world import TEAM
from turns.group_scenes import TwoModels, gate_of, settle

from botservice import Storage
from botservice.config.setting_choices import SlackListen
from botservice.people.access import Access
from botservice.storage.tables.conversations import events
from botservice.texts import in_language
from transports.slack.app import Manners

OWNED = Access(owners=frozenset({f"slack:{TEAM}:U0ALICE"}))
PAUSED, RESUMED, ONLY_HERE, ELSEWHERE = (
    in_language(key, "en").replace("/", "!")
    for key in ("pause.done", "resume.done", "pause.only_here", "resume.elsewhere")
)

pytestmark = pytest.mark.any_database


def says(api: SlackApi, text: str, thread_ts: str | None = None, user: str = "U0ALICE") -> str:
    return api.person_says(f"<@U0BOT> {text}", channel="C0GENERAL", thread_ts=thread_ts, user=user)


async def answered(api: SlackApi, *texts: str) -> None:
    """Return when exactly these answers stand in the channel, in its threads or outside."""
    await api.until(lambda: len(api.said("C0GENERAL")) >= len(texts))
    assert api.said("C0GENERAL") == list(texts)


async def test_a_pause_in_the_channel_silences_all_of_its_threads(api: SlackApi, bot_on_both):
    async with bot_on_both(api, access=OWNED):
        thread = says(api, "one", user="U0BOB")
        await answered(api, "You said: one")
        says(api, "!pause")
        await answered(api, "You said: one", PAUSED)
        says(api, "two", thread, "U0BOB")
        says(api, "three", user="U0BOB")
        says(api, "!reminders", thread)
        await api.until(lambda: len(api.said("C0GENERAL")) == 3)
        says(api, "!resume", thread)
        await api.until(lambda: len(api.said("C0GENERAL")) == 4)
        assert api.said("C0GENERAL")[3] == ELSEWHERE
        says(api, "!resume")
        await api.until(lambda: len(api.said("C0GENERAL")) == 5)
        assert api.said("C0GENERAL")[4] == RESUMED
        says(api, "four", thread, "U0BOB")
        await api.until(lambda: len(api.said("C0GENERAL")) == 6)
        assert api.said("C0GENERAL")[5] == "You said: four"


async def test_a_pause_in_a_thread_is_for_that_thread_alone_and_says_so(api: SlackApi, bot_on_both):
    async with bot_on_both(api, access=OWNED):
        thread = says(api, "one", user="U0BOB")
        await answered(api, "You said: one")
        says(api, "!pause", thread)
        await api.until(lambda: len(api.said("C0GENERAL")) == 2)
        assert api.said("C0GENERAL")[1].endswith(ONLY_HERE)
        says(api, "two", thread, "U0BOB")
        says(api, "three", user="U0BOB")
        await api.until(lambda: len(api.said("C0GENERAL")) == 3)
        assert api.said("C0GENERAL")[2] == "You said: three"
        says(api, "!resume")
        await api.until(lambda: len(api.said("C0GENERAL")) == 4)
        assert api.said("C0GENERAL")[3] == in_language("resume.nothing", "en")
        says(api, "!resume", thread)
        await api.until(lambda: len(api.said("C0GENERAL")) == 5)
        assert api.said("C0GENERAL")[4] == RESUMED


async def test_a_bot_that_listens_is_silent_in_a_channel_that_is_paused(api: SlackApi, bot_on_both, storage: Storage):
    models, clock, manners = TwoModels("yes"), LastingMinute(), Manners(listening=SlackListen.CHANNELS)
    async with bot_on_both(api, models, clock=clock, manners=manners, access=OWNED, gate=gate_of(models)):
        says(api, "!pause")
        await answered(api, PAUSED)
        api.person_says("Which floor is it?", channel="C0GENERAL", user="U0BOB")
        await settle(storage, events=2)
        says(api, "!resume")
        await api.until(lambda: len(api.said("C0GENERAL")) == 2)
        assert models.asked_gate == []


async def test_a_pause_has_the_bot_keep_nothing_of_the_channel_that_it_does_not_keep_otherwise(
    api: SlackApi, bot_on_both, storage: Storage
):
    async with bot_on_both(api, access=OWNED):
        said = api.person_says("nobody's business", channel="C0GENERAL", user="U0BOB")
        says(api, "!pause")
        await answered(api, PAUSED)
        api.send_event(api.changed_event("C0GENERAL", said, "nobody's business at all"))
        await api.all_taken()
        says(api, "!resume")
        await api.until(lambda: len(api.said("C0GENERAL")) == 2)
        count = await storage.read(lambda each: each.execute(select(func.count()).select_from(events)).scalar_one())
    assert count == 2, "the two commands"
