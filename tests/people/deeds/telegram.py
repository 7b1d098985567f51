"""What a person may do on Telegram that leaves words of theirs."""

from people.planted import ALICE, BOB, MARK, OTHER, Town
from standins.bot_api import Refuse

PNG = b"\x89PNG\r\n\x1a\n"


async def alone(town: Town) -> None:
    town.said.append(town.telegram.person_says(town.words(), chat_id=ALICE.id))


async def in_a_group(town: Town) -> None:
    town.said.append(town.in_group(f"@{town.telegram.username} {town.words()}"))


async def unaddressed_in_a_group(town: Town) -> None:
    town.said.append(town.in_group(town.words()))


async def keep(town: Town) -> None:
    town.telegram.person_says(f"keep: {town.words()[:60]}", chat_id=ALICE.id)


async def remind(town: Town) -> None:
    town.telegram.person_says(f"remind: {town.words()[:60]}", chat_id=ALICE.id)


async def remind_a_group(town: Town) -> None:
    town.in_group(f"@{town.telegram.username} remind: {town.words()[:60]}")


async def send_a_file(town: Town) -> None:
    words = town.words()
    town.telegram.person_sends_document(words.encode(), chat_id=ALICE.id, name=f"{MARK}.txt", caption=words)


async def send_a_picture(town: Town) -> None:
    town.telegram.person_sends_photo(PNG + MARK.encode(), chat_id=ALICE.id, caption=town.words())


async def send_an_album(town: Town) -> None:
    pictures = [PNG + MARK.encode() + bytes([number]) for number in range(3)]
    town.telegram.person_sends_album(pictures, chat_id=ALICE.id, caption=town.words())


async def send_a_voice(town: Town) -> None:
    town.telegram.person_sends_voice(b"OggS" + MARK.encode(), chat_id=ALICE.id)


async def edit(town: Town) -> None:
    if town.said:
        said = town.chance.choice(town.said)
        town.telegram.person_edits(said.chat_id, said.message_id, town.words())


async def choose(town: Town) -> None:
    town.telegram.person_says(f"let me choose, says {MARK}", chat_id=ALICE.id)
    await town.quiet()
    found = [each for each in town.telegram.visible_messages(ALICE.id, from_bot=True) if each.buttons]
    if found:
        town.telegram.person_presses(ALICE.id, found[-1].message_id, found[-1].buttons[0][0]["callback_data"])


async def ask_for_an_export(town: Town) -> None:
    town.telegram.person_says("/export", chat_id=ALICE.id)


async def list_facts(town: Town) -> None:
    town.telegram.person_says("/memory", chat_id=ALICE.id)


async def give_a_persona(town: Town) -> None:
    town.telegram.person_says(f"/persona be {town.words()[:60]}", chat_id=ALICE.id)


async def ask_for_a_code(town: Town) -> None:
    town.telegram.person_says("/link", chat_id=ALICE.id)


async def fail_to_be_told(town: Town) -> None:
    town.telegram.order(Refuse(403, "Forbidden: bot was blocked by the user"), "sendMessage", chat_id=ALICE.id)
    town.telegram.person_says(town.words(), chat_id=ALICE.id)


async def in_a_group_that_moves(town: Town) -> None:
    before, after = -4_000_000 - len(town.said), -1004_000_000_000 - len(town.said)
    town.telegram.add_group(before, type="group", members=[ALICE, BOB])
    for user, word in ((BOB, OTHER), (ALICE, MARK)):
        town.telegram.person_says(f"@{town.telegram.username} {town.words(word)}", chat_id=before, user=user)
    await town.quiet()
    town.telegram.migrate(before, after)
    town.said.append(town.telegram.person_says(f"@{town.telegram.username} {town.words()}", chat_id=after, user=ALICE))


async def bob_alone(town: Town) -> None:
    town.telegram.person_says(f"keep: {town.words(OTHER)[:60]}", chat_id=BOB.id)


async def bob_in_a_group(town: Town) -> None:
    town.in_group(f"@{town.telegram.username} {town.words(OTHER)}", user=BOB)


async def bob_sends_a_like_file(town: Town) -> None:
    town.telegram.person_sends_photo(PNG + OTHER.encode(), chat_id=BOB.id, caption=town.words(OTHER))


DEEDS = (
    *(alone, in_a_group, unaddressed_in_a_group, keep, remind, remind_a_group, send_a_file, send_a_picture),
    *(send_an_album, send_a_voice, edit, choose, ask_for_an_export, list_facts, give_a_persona, ask_for_a_code),
    *(fail_to_be_told, in_a_group_that_moves, bob_alone, bob_in_a_group, bob_sends_a_like_file),
)
