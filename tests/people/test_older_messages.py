"""What the first releases wrote into the texts of messages becomes values: who said what, as far as it can be told."""

import pytest
from people.conversing import ALICE, BOB, make_older, open_chat, say
from people.crowd import find_bytes

from botservice import Attachment, Author
from botservice.core.message_references import Reference, ReferenceKind
from botservice.privacy.exported_data import as_values, read_person
from botservice.privacy.forgetting import forget_person
from botservice.storage.conversion import OLDER, convert_messages, take_apart

REPLY, FORWARD, SHARE, ABOUT = (ReferenceKind.REPLY, ReferenceKind.FORWARD, ReferenceKind.SHARE, ReferenceKind.ABOUT)
EVE = Author(name="Eve")


@pytest.mark.parametrize(
    ("stored", "text", "references"),
    [
        ("why [not]?", "why [not]?", ()),
        ('[in reply to Eve: "tea"]\nwhy?', "why?", (Reference(REPLY, EVE, "tea"),)),
        ('[in reply to Eve: "two\nlines "] here…"]\nwhy?', "why?", (Reference(REPLY, EVE, 'two\nlines "] here…'),)),
        ('[in reply to Eve: "an end " ] of it"]', "", (Reference(REPLY, EVE, 'an end "] of it'),)),
        ('[in reply to you: "sky"]\nwhy?', "why?", (Reference(REPLY, None, "sky", is_of_assistant=True),)),
        ("[in reply to Eve]\nwhy?", "why?", (Reference(REPLY, EVE),)),
        ("[in reply to Eve\nwhy?", "[in reply to Eve\nwhy?", ()),
        ('[in reply to Eve: "tea', '[in reply to Eve: "tea', ()),
        ("[forwarded from Eve]\nlook\nhere", "", (Reference(FORWARD, EVE, "look\nhere"),)),
        ("[forwarded from Eve]", "", (Reference(FORWARD, EVE),)),
        ('[about a message of Eve: "tea"]\nwhen?', "when?", (Reference(ABOUT, EVE, "tea"),)),
        ("see\n[shared from Eve: one\n  two]", "see", (Reference(SHARE, EVE, "one\ntwo"),)),
        ("[shared: alone]", "", (Reference(SHARE, None, "alone"),)),
        (
            "see\n[shared from Eve: one]\n[shared from Bo: two\nthree]\n[file: a.txt]\nwords",
            "see\n[file: a.txt]\nwords",
            (Reference(SHARE, EVE, "one"), Reference(SHARE, Author(name="Bo"), "two\nthree")),
        ),
    ],
)
def test_a_text_is_taken_apart(stored, text, references):
    taken = take_apart(stored, has_files=False)
    assert (taken.text, taken.references, taken.own_text) == (text, references, None)


def test_what_stands_in_files_is_nobodys_own_words():
    taken = take_apart('[in reply to Eve: "tea"]\nread\n[file: a.txt]\nI am rich', has_files=True)
    assert (taken.text, taken.own_text) == ("read\n[file: a.txt]\nI am rich", "read")


async def test_a_quote_finds_its_author_by_what_they_said(storage):
    group = await open_chat(storage, "telegram-g", ALICE, BOB)
    await say(group, "the safe opens with 4711", ALICE, external_id="7")
    await say(group, "so what", Author("telegram", "3", "Alice"))
    await say(group, '[in reply to Alice: "the safe opens…"]\nwhich safe?', BOB)
    await say(group, '[in reply to Alice: "nobody said so"]\nwhen?', BOB)
    await make_older(storage)
    await convert(storage)
    found, unknown = [each for each in await group.chat_history.messages() if each.references]
    assert (found.text, unknown.text) == ("which safe?", "when?")
    assert found.references == (Reference(REPLY, ALICE, "the safe opens…", "7"),)
    assert unknown.references == (Reference(REPLY, Author("telegram", None, "Alice"), "nobody said so"),)
    assert found.full_text == '[in reply to Alice: "the safe opens…"]\nwhich safe?'


async def test_forgetting_and_exports_find_what_was_converted(storage):
    group = await open_chat(storage, "telegram-g", ALICE, BOB)
    await say(group, "the safe opens with 4711", ALICE)
    await say(group, '[in reply to Alice: "@bot the safe opens with 4711"]\nwhich safe?', BOB)
    await say(group, '[in reply to Alice: "and what I edited away"]\noh', BOB)
    file = Attachment("image/png", "plan.png", data=b"a plan of the house")
    await say(group, "[forwarded from Carol]\nmy secret plan", BOB, attachments=(file,))
    await make_older(storage)
    await convert(storage)
    given = str(as_values(await read_person(storage, BOB)))
    assert "4711" not in given
    assert "secret plan" not in given
    assert "plan.png" not in given
    assert "[in reply to a message of another person]\\nwhich safe?" in given
    await forget_person(storage, ALICE)
    left = [each.full_text for each in await group.chat_history.messages()]
    assert left == [
        "[in reply to somebody]\nwhich safe?",
        "[in reply to somebody]\noh",
        "[forwarded from Carol]\nmy secret plan",
    ]
    assert await find_bytes(storage, "4711") == await find_bytes(storage, "edited away") == []


async def convert(storage):
    await storage.write(lambda connection: convert_messages(connection, connection.execute(OLDER).all()))
