"""What others repeat on Telegram of what a person says: their own words are to stay, and the repeated ones to go."""

from people.planted import ALICE, BOB, GROUP, MARK, OTHER, Town
from standins.bot_api.files import attached


def listen(town: Town) -> str:
    return f"@{town.telegram.username} listen: {town.words(OTHER)}"


async def reply(town: Town) -> None:
    said = town.in_group(town.words())
    town.replies.append(town.in_group(listen(town), user=BOB, reply_to=said.message_id))


async def quote_a_part(town: Town) -> None:
    said = town.in_group(town.words())
    town.in_group(listen(town), user=BOB, reply_to=said.message_id, quote=said.message["text"][3:14])


async def quote_what_is_changed_later(town: Town) -> None:
    said = town.in_group(town.words())
    town.in_group(listen(town), user=BOB, reply_to=said.message_id)
    town.telegram.person_edits(GROUP, said.message_id, town.words())


async def quote_from_elsewhere(town: Town) -> None:
    outside = {
        "external_reply": {"origin": origin("user", sender_user=ALICE.as_user())},
        "quote": {"text": town.words(), "position": 0},
    }
    town.telegram.person_says(f"listen: {town.words(OTHER)}", chat_id=BOB.id, extra=outside)


async def forward(town: Town) -> None:
    forwarded = {"forward_origin": origin("user", sender_user=ALICE.as_user())}
    town.telegram.person_says(town.words(), chat_id=BOB.id, extra=forwarded)


async def forward_what_hides_its_author(town: Town) -> None:
    said = town.in_group(f"@{town.telegram.username} {town.words()}")
    await town.quiet()
    forwarded = {"forward_origin": origin("hidden_user", sender_user_name=f"{MARK}name")}
    town.in_group(said.message["text"], user=BOB, extra=forwarded)


async def forward_a_file(town: Town) -> None:
    forwarded = {"forward_origin": origin("user", sender_user=ALICE.as_user())}
    with town.telegram.condition:
        file = town.telegram.world.files.add("document", f"the file of {MARK}".encode(), name=f"{MARK}.txt")
    content = {"caption": town.words(), **attached("document", file), **forwarded}
    town.telegram.person_sends(content, chat_id=BOB.id)


def origin(kind: str, **who: object) -> dict[str, object]:
    return {"type": kind, "date": 1_700_000_000, **who}


DEEDS = (
    *(reply, quote_a_part, quote_what_is_changed_later, quote_from_elsewhere, forward),
    *(forward_what_hides_its_author, forward_a_file),
)
