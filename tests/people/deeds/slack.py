"""What a person may do in Slack that leaves words of theirs, and what others make of these there."""

from people.planted import MARK, OTHER, Town
from standins.slack_api import BOT_USER

from transports.slack.interactions import ASK_CALLBACK, QUESTION_BLOCK, QUESTION_INPUT

MENTION = f"<@{BOT_USER}>"


async def alone(town: Town) -> None:
    town.slack.person_says(town.words())


async def in_a_channel(town: Town) -> None:
    town.slack.person_says(f"{MENTION} {town.words()}", channel="C0GENERAL")


async def in_a_thread_of_bob(town: Town) -> None:
    ts = town.slack.person_says(f"{MENTION} {town.words(OTHER)}", channel="C0GENERAL", user="U0BOB")
    town.slack.person_says(f"{MENTION} {town.words()}", channel="C0GENERAL", thread_ts=ts)


async def send_a_file(town: Town) -> None:
    file = town.slack.add_file(f"{MARK}.txt", town.words().encode(), "text/plain")
    town.slack.person_says(town.words(), files=[file], subtype="file_share")


async def give_a_command(town: Town) -> None:
    town.slack.command(town.words(), channel="C0OTHER")


async def edit(town: Town) -> None:
    ts = town.slack.person_says(town.words())
    town.slack.send_event(town.slack.changed_event("D0ALICE", ts, town.words()))


async def judge(town: Town) -> None:
    await in_a_channel(town)
    await town.quiet()
    posts = [each for each in town.slack.bot_posts("C0GENERAL") if each.blocks]
    found = [
        (post, block["elements"][0]) for post in posts for block in post.blocks if block["type"] == "context_actions"
    ]
    if found:
        post, element = found[-1]
        town.slack.press(post, element, value=element["positive_button"]["value"])


async def bob_in_a_channel(town: Town) -> None:
    town.slack.person_says(f"{MENTION} {town.words(OTHER)}", channel="C0GENERAL", user="U0BOB")


async def bob_shares(town: Town) -> None:
    words = town.words()
    shared = {
        "is_msg_unfurl": True,
        "is_share": True,
        "text": words,
        "fallback": f"[May 4th] {MARK}name: {words}",
        "author_id": "U0ALICE",
        "author_name": f"{MARK}name",
        "channel_id": "C0OTHER",
        "ts": "1700000000.000100",
    }
    said = f"{MENTION} listen: {town.words(OTHER)}"
    town.slack.person_says(said, channel="C0GENERAL", user="U0BOB", attachments=[shared])


async def broadcast(town: Town) -> None:
    ts = town.slack.person_says(f"{MENTION} {town.words(OTHER)}", channel="C0GENERAL", user="U0BOB")
    root = {"type": "message", "user": "U0BOB", "text": f"{MENTION} {OTHER}", "ts": ts, "thread_ts": ts}
    said = f"{MENTION} {town.words()}"
    town.slack.person_says(said, channel="C0GENERAL", thread_ts=ts, subtype="thread_broadcast", root=root)


async def bob_broadcasts(town: Town) -> None:
    words = town.words()
    ts = town.slack.person_says(words, channel="C0GENERAL", deliver=False)
    root = {"type": "message", "user": "U0ALICE", "text": words, "ts": ts, "thread_ts": ts}
    said = f"{MENTION} {town.words(OTHER)}"
    how = {"channel": "C0GENERAL", "user": "U0BOB", "thread_ts": ts, "root": root}
    town.slack.person_says(said, subtype="thread_broadcast", **how)


async def bob_asks_about(town: Town) -> None:
    words, known = town.words(), len(town.slack.world.modals)
    ts = town.slack.person_says(words, channel="C0OTHER", deliver=False)
    town.slack.interact(
        "message_action",
        user="U0BOB",
        callback_id=ASK_CALLBACK,
        message={"type": "message", "user": "U0ALICE", "ts": ts, "text": words},
        channel={"id": "C0OTHER", "name": "other"},
        response_url=f"{town.slack.base}/response/asked",
    )
    modals = await town.slack.until(lambda: town.slack.world.modals[known:])
    view = modals[0] | {"state": {"values": {QUESTION_BLOCK: {QUESTION_INPUT: {"value": town.words(OTHER)}}}}}
    town.slack.interact("view_submission", user="U0BOB", view=view, retries=True)


DEEDS = (
    *(alone, in_a_channel, in_a_thread_of_bob, send_a_file, give_a_command, edit, judge),
    *(bob_in_a_channel, bob_shares, bob_asks_about, broadcast, bob_broadcasts),
)
