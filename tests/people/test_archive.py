"""What a person takes along: all of theirs, from every account, and nothing of anybody else."""

import io
import json
import zipfile

from people.conversing import ALICE, ALICE_ON_SLACK, BOB, NOW, open_chat
from people.crowd import crowded

from botservice import Attachment, Author
from botservice.llm.chat import ChatResponse
from botservice.people.fact_keeping import keep_fact
from botservice.people.queries import find_identity, join_identities
from botservice.privacy.exported_data import as_values, make_archive, read_person

PERSON = Author("messenger", "alice")


class Echo:
    """A model that answers with what was said."""

    model = "echo"

    async def chat(self, messages, tools=(), *, on_text=None):
        said = messages[-1]["content"]
        return ChatResponse(f"re: {said if isinstance(said, str) else said[0]['text']}")


async def test_an_archive_holds_what_was_said_and_answered_and_the_files(storage):
    async with crowded(storage, Echo()) as bot:
        say = bot.messenger.say
        await say(bot, "alice", "in private: apples", chat="alice", name="Alice", file="../photo one.png")
        await say(bot, "bob", "bob likes beans", chat="group1")
        await say(bot, "alice", "alice likes cherries", chat="group1")
    data = await read_person(storage, PERSON)
    archive = zipfile.ZipFile(io.BytesIO(make_archive(data)))
    values = json.loads(archive.read("data.json"))
    assert [each["text"] for each in values["messages"]] == ["in private: apples", "alice likes cherries"]
    assert len(values["answers"]) == 2
    assert all("apples" in each["text"] or "cherries" in each["text"] for each in values["answers"])
    path = values["messages"][0]["attachments"][0]["file"]
    assert path.endswith("photo-one.png")
    assert ".." not in path
    assert archive.read(path).startswith(b"\x89PNG")
    pages = "".join(archive.read(name).decode() for name in archive.namelist() if name.endswith(".md"))
    assert "**Alice**" in pages
    assert f"[../photo one.png](../{path})" in pages
    assert "beans" not in pages + json.dumps(values)


async def test_facts_and_linked_accounts_are_in_it(storage):
    telegram = await open_chat(storage, "telegram-a", ALICE)
    slack = await open_chat(storage, "slack-a", ALICE_ON_SLACK)
    await telegram.chat_history.append_user_message("I am vegetarian", author=ALICE)
    await slack.chat_history.append_user_message("hello from slack", author=ALICE_ON_SLACK)
    await storage.write(lambda c: keep_fact(c, telegram.id, ALICE, "diet", "Is vegetarian", NOW))
    await storage.write(lambda c: join_identities(c, find_identity(c, ALICE), find_identity(c, ALICE_ON_SLACK)))
    values = as_values(await read_person(storage, ALICE_ON_SLACK))
    assert [each["platform"] for each in values["accounts"]] == ["telegram", "slack"]
    assert [(each["text"], each["said"]) for each in values["facts"]] == [("Is vegetarian", "I am vegetarian")]
    assert [each["text"] for each in values["messages"]] == ["I am vegetarian", "hello from slack"]


async def test_files_beyond_what_a_chat_carries_are_named_and_left_out(sqlite_storage):
    chat = await open_chat(sqlite_storage, "telegram-a", BOB)
    for number in range(3):
        file = Attachment("image/png", f"{number}.png", data=bytes([number]) * 100)
        await chat.chat_history.append_user_message("look", author=BOB, attachments=[file])
    data = await read_person(sqlite_storage, BOB)
    names = zipfile.ZipFile(io.BytesIO(make_archive(data, max_files_bytes=250))).namelist()
    assert sum(name.startswith("files/") for name in names) == 2
    assert any(name.endswith("2.png") for name in names), "the newest are in it"
    assert sum(each.startswith("files/") for each in zipfile.ZipFile(io.BytesIO(make_archive(data))).namelist()) == 3
