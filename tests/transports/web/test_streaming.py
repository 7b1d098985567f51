"""The hub: what is not kept, and never in the way."""

import gc
import re

from transports.web.streaming import LONGEST_DRAFT, Hub, LiveAnswer


async def written(hub: Hub, session: str) -> str:
    draft = hub.channel(session).draft
    if draft is None:
        return ""
    await draft.format(is_all=True)
    return re.sub(r"<[^>]*>", "", "".join(draft.all_blocks)).strip()


async def test_a_live_answer_waits_for_nobody():
    hub = Hub()
    live = LiveAnswer(hub.channel("a"))
    for _ in range(100_000):
        live.on_text("word ")
    live.on_activity("tool")
    await live.close()
    await live.close()


async def test_a_draft_is_bounded():
    hub = Hub()
    live = LiveAnswer(hub.channel("a"))
    for _ in range(10):
        live.on_text("x" * (LONGEST_DRAFT // 4))
    assert len(await written(hub, "a")) <= LONGEST_DRAFT + LONGEST_DRAFT // 4


async def test_what_is_said_beside_a_call_is_no_part_of_the_answer():
    hub = Hub()
    channel = hub.channel("a")
    live = LiveAnswer(channel)
    live.on_text("Let me see.")
    live.on_activity("look_up")
    assert channel.draft is not None
    assert (await written(hub, "a"), live.at_work.name) == ("", "look_up")
    live.on_text("It is 5.")
    assert (await written(hub, "a"), live.at_work) == ("It is 5.", None)


async def test_every_watcher_is_woken():
    hub = Hub()
    channel = hub.channel("a")
    with channel.watching() as one, channel.watching() as two, hub.channel("b").watching() as other:
        assert hub.count_watchers() == 3
        LiveAnswer(channel).on_text("x")
        assert one.is_set()
        assert two.is_set()
        assert not other.is_set()
        hub.close()
        assert other.is_set()
    assert hub.count_watchers() == 0


async def test_sessions_that_nobody_watches_are_not_kept():
    hub = Hub()
    for number in range(100):
        LiveAnswer(hub.channel(str(number)))
        hub.note_stored(str(number))
    gc.collect()
    assert len(hub._channels) == 0
