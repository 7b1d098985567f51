"""Files are encrypted before they are stored, where there is a key; keys can be changed."""

import pytest
from sqlalchemy import select

from botservice import (
    AgentContext,
    AgentService,
    Attachment,
    Author,
    FunctionsBasedAgent,
    ScriptedChatLLM,
    SettingsError,
    Storage,
    StorageError,
)
from botservice.cli.doctor import check_everything
from botservice.config.settings import Settings
from botservice.conversation.queries import set_metadata
from botservice.privacy.forgetting import forget_person
from botservice.storage.blobs import check_readable, encrypt_files, give_up_unreadable
from botservice.storage.tables.conversations import blobs

OLD, NEW = "old key " * 5, "new key " * 5
SECRET = b"\x89PNG the bytes of a secret picture"


async def put(storage: Storage, data: bytes = SECRET) -> AgentContext:
    context = await AgentContext.get_or_create(storage, {"chat": "1"})
    await context.chat_history.append_user_message("look", attachments=[Attachment("image/png", "x.png", data=data)])
    return context


async def get(storage: Storage) -> list[bytes]:
    context = await AgentContext.get_or_create(storage, {"chat": "1"})
    return [file.data for each in await context.chat_history.messages() for file in each.attachments]


async def stored(storage: Storage) -> list[bytes]:
    return [bytes(data) for data in await storage.read(lambda c: c.execute(select(blobs.c.data)).scalars().all())]


async def test_with_a_key_files_are_stored_encrypted_and_read_as_they_were(storage_url):
    async with Storage.open(storage_url, encryption_key=OLD) as storage:
        await put(storage)
        assert await get(storage) == [SECRET]
        (kept,) = await stored(storage)
        assert b"secret picture" not in kept
    for key in (None, NEW):
        async with Storage.open(storage_url, encryption_key=key) as storage:
            context = await AgentContext.get_or_create(storage, {"chat": "1"})
            (lost,) = (await context.chat_history.messages())[0].attachments
            assert (lost.mime_type, lost.data) == ("application/octet-stream", b"")
            assert lost.name == "x.png (stored with a key that is lost: it cannot be read)"
            with pytest.raises(StorageError, match="ENCRYPTION_KEY"):
                await storage.read(check_readable)
    async with Storage.open(storage_url, encryption_key=f"{NEW},{OLD}") as storage:
        assert await get(storage) == [SECRET]


async def test_files_whose_key_is_lost_are_given_up_on_demand_and_the_others_stay(storage_url):
    async with Storage.open(storage_url, encryption_key=OLD) as storage:
        await put(storage)
    async with Storage.open(storage_url, encryption_key=NEW) as storage:
        await put(storage, b"another file")
        with pytest.raises(StorageError, match="ENCRYPTION_KEY"):
            await encrypt_files(storage)
        assert await give_up_unreadable(storage) == 1
        assert await get(storage) == [b"", b"another file"]
        assert await encrypt_files(storage) == 1
        await storage.read(check_readable)
        await put(storage)
        assert await get(storage) == [SECRET, b"another file", SECRET]


async def test_a_person_is_forgotten_though_the_key_of_what_prompts_held_is_lost(storage_url):
    ann = Author("telegram", "42", "Ann")
    async with Storage.open(storage_url, encryption_key=OLD) as storage:
        context = await AgentContext.get_or_create(storage, {"chat": "1"})
        persona = {"text": "A pirate called Swordfish", "by": "telegram:42"}
        await storage.write(lambda c: set_metadata(c, context_id=context.id, key="persona", value=persona))
        context = await AgentContext.get_or_create(storage, {"chat": "1"})
        await context.chat_history.append_user_message("Be a pirate", author=ann)
        agent = FunctionsBasedAgent(llm=ScriptedChatLLM(["aye"]), prompt="Be brief.")
        await AgentService(agent, storage).prompt(context, "hello", author=Author("telegram", "7", "Bob"))
        assert await stored(storage)
    async with Storage.open(storage_url, encryption_key=NEW) as storage:
        await forget_person(storage, ann)
        context = await AgentContext.get_or_create(storage, {"chat": "1"})
        assert not context.metadata
        assert await stored(storage) == [], "nobody can tell what they held"


async def test_what_was_stored_before_is_encrypted_on_demand_and_old_keys_can_go(storage_url):
    async with Storage.open(storage_url) as storage:
        await put(storage)
        await put(storage, b"another file")
    async with Storage.open(storage_url, encryption_key=OLD) as storage:
        assert sorted(await get(storage)) == sorted([SECRET, b"another file"])
        assert await encrypt_files(storage) == 2
    async with Storage.open(storage_url, encryption_key=f"{NEW},{OLD}") as storage:
        assert await encrypt_files(storage) == 2
    async with Storage.open(storage_url, encryption_key=NEW) as storage:
        assert sorted(await get(storage)) == sorted([SECRET, b"another file"])


async def test_the_clear_bytes_leave_the_file(sqlite_url, tmp_path):
    async with Storage.open(sqlite_url) as storage:
        await put(storage)
    async with Storage.open(sqlite_url, encryption_key=OLD) as storage:
        await encrypt_files(storage)
        assert not [each for each in tmp_path.iterdir() if SECRET in each.read_bytes()]


def test_a_key_that_can_be_guessed_is_refused():
    with pytest.raises(SettingsError, match="ENCRYPTION_KEY must be"):
        Storage.open("sqlite://", encryption_key="short")


@pytest.mark.parametrize(
    ("key", "mark", "said"),
    [(None, "✗", "set ENCRYPTION_KEY"), (OLD, "✓", "1 older ones are not"), (NEW, "✗", "is ENCRYPTION_KEY the one")],
)
async def test_the_doctor_says_what_is_encrypted_and_whether_the_key_fits(sqlite_url, key, mark, said):
    async with Storage.open(sqlite_url) as storage:
        await put(storage, b"plain")
    async with Storage.open(sqlite_url, encryption_key=OLD) as storage:
        await put(storage)
    settings = Settings(_env_file=None, database_url=sqlite_url, encryption_key=key, port=0)
    (finding,) = [each for each in await check_everything(settings) if each.name == "encryption"]
    assert finding.mark == mark
    assert said in finding.text
