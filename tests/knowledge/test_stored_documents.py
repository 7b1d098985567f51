"""Documents that the bot may quote: what is added is found, by those who may read it, and nothing else is."""

import random
from pathlib import Path

import pytest
from sqlalchemy import func, select
from standins import office

from botservice import AgentContext, AgentService, Attachment, Author, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.agent.document_reader import OfficeReader
from botservice.agent.knowledge_base import BETWEEN
from botservice.commands.standard import standard_commands
from botservice.core.errors import KnowledgeError
from botservice.core.messages import InboundMessage
from botservice.knowledge.indexer import KnowledgeIndexer, parse_readers
from botservice.knowledge.queries import count_source, delete_source, list_documents, list_passages, list_sources
from botservice.knowledge.stored_documents import StoredDocuments
from botservice.knowledge.watcher import KnowledgeWatcher
from botservice.people.access import Access
from botservice.people.access_values import AccessRole
from botservice.privacy.forgetting import forget_chat
from botservice.storage.tables.knowledge import knowledge_documents, knowledge_passages, knowledge_sources
from botservice.turns.commands import CommandRequest, parse_command

HANDBOOK = """# Handbook

## Leave

Everyone has twenty-eight days of leave a year.

## Travel

The office books trains in the week before the journey. Receipts are kept for three years.
"""
WIFI = "# Network\n\nThe password of the guest network is on the board beside the kitchen door.\n"
GROUP, OTHER = {"transport": "telegram", "chat_id": "-100"}, {"transport": "telegram", "chat_id": "-200"}
OWNER, GUEST = Author("telegram", "42", "Ann"), Author("telegram", "43", "Bob")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "handbook.md").write_text(HANDBOOK)
    (tmp_path / "docs" / "wifi.md").write_text(WIFI)
    return tmp_path / "docs"


@pytest.fixture
def documents() -> StoredDocuments:
    return StoredDocuments(Access(owners=frozenset({"telegram:42"})))


async def texts(documents: StoredDocuments, context: AgentContext, question: str) -> list[str]:
    return [each.text for each in await documents.find(question, context, k=5)]


async def asked_by(storage: Storage, keys: dict[str, str], author: Author) -> AgentContext:
    context = await AgentContext.get_or_create(storage, keys)
    await context.chat_history.append_user_message("hello", author=author)
    return context


async def command(storage: Storage, context: AgentContext, text: str, author: Author = GUEST) -> str:
    """Return what a command answers."""
    call = parse_command(text)
    assert call is not None
    role = AccessRole.OWNER if author == OWNER else None
    access = Access(owners=frozenset({"telegram:42"}))
    message = InboundMessage(text, author=author, command=call)
    request = CommandRequest(call, message, context, None, None, storage.now(), role=role, access=access)  # type: ignore[arg-type]
    answer = await standard_commands().answer(request)
    return answer.text if isinstance(answer.text, str) else answer.text.plain


async def test_a_passage_is_found_by_the_chats_that_may_read_it_alone(
    storage: Storage, folder: Path, documents: StoredDocuments
) -> None:
    indexer = KnowledgeIndexer(storage)
    source, report = await indexer.add(str(folder), readers=parse_readers("telegram:-100"))
    assert (source.name, report.added, report.problems) == ("docs", 2, [])
    group = await AgentContext.get_or_create(storage, GROUP)
    topic = await AgentContext.get_or_create(storage, GROUP | {"thread_id": "7"})
    other = await AgentContext.get_or_create(storage, OTHER)
    question = "How many days of leave do I have?"
    assert await texts(documents, group, question) == ["Everyone has twenty-eight days of leave a year."]
    assert await texts(documents, topic, question) == ["Everyone has twenty-eight days of leave a year."]
    assert await texts(documents, other, question) == []
    found = await documents.find(question, group, k=5)
    assert [each.place for each in found] == [f"Handbook{BETWEEN}Leave"]
    assert await documents.get([each.id for each in found], other) == []


async def test_without_readers_owners_alone_read_it_and_only_where_nobody_reads_along(
    storage: Storage, folder: Path, documents: StoredDocuments
) -> None:
    await KnowledgeIndexer(storage).add(str(folder))
    question = "Where is the password of the guest network?"
    own = await asked_by(storage, {"transport": "telegram", "chat_id": "42"}, OWNER)
    assert len(await texts(documents, own, question)) == 1
    assert (
        await texts(documents, await asked_by(storage, {"transport": "telegram", "chat_id": "43"}, GUEST), question)
        == []
    )
    assert await texts(documents, await asked_by(storage, GROUP, OWNER), question) == []
    channel = {"transport": "slack", "team_id": "T1", "channel_id": "C1"}
    assert await texts(documents, await asked_by(storage, channel, OWNER), question) == []


async def test_only_what_changed_is_read_again(storage: Storage, folder: Path, documents: StoredDocuments) -> None:
    indexer = KnowledgeIndexer(storage)
    source, _ = await indexer.add(str(folder), readers=("all",))
    context = await AgentContext.get_or_create(storage, GROUP)
    [before] = await documents.find("When are trains booked?", context, k=5)
    (folder / "handbook.md").write_text(HANDBOOK.replace("twenty-eight", "thirty"))
    (folder / "wifi.md").unlink()
    report = await indexer.refresh(source)
    assert (report.added, report.changed, report.unchanged, report.removed) == (0, 1, 0, 1)
    assert await texts(documents, context, "How many days of leave?") == ["Everyone has thirty days of leave a year."]
    [after] = await documents.find("When are trains booked?", context, k=5)
    assert after.id == before.id
    assert await texts(documents, context, "Where is the password of the guest network?") == []
    assert (await indexer.refresh(source)).unchanged == 1


async def test_a_folder_that_is_missing_or_empty_removes_nothing(
    storage: Storage, folder: Path, documents: StoredDocuments
) -> None:
    indexer = KnowledgeIndexer(storage)
    source, _ = await indexer.add(str(folder), readers=("all",))
    for name in ("handbook.md", "wifi.md"):
        (folder / name).unlink()
    with pytest.raises(KnowledgeError, match="has no documents; what was read of it is kept"):
        await indexer.refresh(source)
    folder.rmdir()  # noqa: ASYNC240
    with pytest.raises(KnowledgeError, match="is missing"):
        await indexer.refresh(source)
    context = await AgentContext.get_or_create(storage, GROUP)
    assert len(await texts(documents, context, "How many days of leave do I have?")) == 1


async def test_a_source_that_is_removed_leaves_nothing(
    storage: Storage, folder: Path, documents: StoredDocuments
) -> None:
    await KnowledgeIndexer(storage).add(str(folder), readers=("all",))
    context = await AgentContext.get_or_create(storage, GROUP)
    found = await documents.find("How many days of leave do I have?", context, k=5)
    assert await storage.write(lambda c: delete_source(c, "docs"))
    assert not await storage.write(lambda c: delete_source(c, "docs"))
    assert await texts(documents, context, "How many days of leave do I have?") == []
    assert await documents.get([each.id for each in found], context) == []
    for table in (knowledge_sources, knowledge_documents, knowledge_passages):
        count = select(func.count()).select_from(table)
        assert await storage.read(lambda c, count=count: c.execute(count).scalar_one()) == 0


async def test_a_document_that_cannot_be_read_is_named_and_the_others_are_read(
    storage: Storage, folder: Path, documents: StoredDocuments
) -> None:
    (folder / "broken.docx").write_bytes(b"no document")
    (folder / "plan.docx").write_bytes(office.docx("# Plan", "The festival begins in the third week of May."))
    (folder / "empty.txt").write_text(" ")
    (folder / "picture.png").write_bytes(b"\x89PNG")
    source, report = await KnowledgeIndexer(storage).add(str(folder), readers=("all",))
    assert {path for path, _ in report.problems} == {"broken.docx", "empty.txt"}
    read = {each.path: each for each in await storage.read(lambda c: list_documents(c, source.id))}
    assert read["plan.docx"].title == "Plan"
    assert "cannot be read" in str(read["broken.docx"].problem)
    assert "picture.png" not in read
    counts = await storage.read(lambda c: count_source(c, source.id))
    assert (counts.documents, counts.unread) == (5, 2)
    context = await AgentContext.get_or_create(storage, GROUP)
    assert await texts(documents, context, "When does the festival begin?") == [
        "The festival begins in the third week of May."
    ]


async def test_names_and_places_that_are_wrong_are_refused_with_the_remedy(storage: Storage, folder: Path) -> None:
    indexer = KnowledgeIndexer(storage)
    with pytest.raises(KnowledgeError, match="there is no file or folder /nowhere"):
        await indexer.add("/nowhere")
    with pytest.raises(KnowledgeError, match="is no chat: write all, or telegram:CHAT_ID"):
        parse_readers("telegram:@name")
    await indexer.add(str(folder / "wifi.md"), name="docs")
    with pytest.raises(KnowledgeError, match="give another --name"):
        await indexer.add(str(folder), name="docs")
    (folder / "broken.docx").write_bytes(b"no document")
    with pytest.raises(KnowledgeError, match=r"broken\.docx: the document cannot be read"):
        await indexer.add(str(folder / "broken.docx"))
    assert [each.name for each in await storage.read(list_sources)] == ["docs"]


async def test_an_answer_names_the_documents_that_it_rests_on(
    storage: Storage, folder: Path, documents: StoredDocuments
) -> None:
    await KnowledgeIndexer(storage).add(str(folder), readers=("all",))
    context = await AgentContext.get_or_create(storage, GROUP)
    [passage] = await documents.find("How many days of leave do I have?", context, k=5)
    llm = ScriptedChatLLM([f"You have 28 days [D{passage.id}], and no more [D999]."])
    service = AgentService(FunctionsBasedAgent(llm=llm, knowledge=documents), storage)
    answer = await service.prompt(context, "How many days of leave do I have?")
    assert answer.text == f"You have 28 days [1], and no more.\n\nSources:\n1. Handbook{BETWEEN}Leave"
    [prompt] = llm.prompts
    quoted = [each["content"] for each in prompt if f"[D{passage.id}]" in str(each["content"])]
    assert len(quoted) == 1
    assert "> Everyone has twenty-eight days of leave a year." in quoted[0]
    assert "search_knowledge" in {each["function"]["name"] for each in llm.tools[0]}


async def test_the_watcher_reads_folders_with_what_their_readers_file_says(
    storage: Storage, folder: Path, documents: StoredDocuments
) -> None:
    (folder / "knowledge.json").write_text('{"for": ["telegram:-100"], "name": "handbook"}')
    watcher = KnowledgeWatcher(storage, [folder])
    assert await watcher.run_once()
    [source] = await storage.read(list_sources)
    assert (source.name, source.readers) == ("handbook", ("telegram:-100",))
    (folder / "knowledge.json").write_text('{"for": ["telegram:-200"], "name": "handbook"}')
    assert await watcher.run_once()
    other = await AgentContext.get_or_create(storage, OTHER)
    assert len(await texts(documents, other, "How many days of leave do I have?")) == 1
    group = await AgentContext.get_or_create(storage, GROUP)
    assert await texts(documents, group, "How many days of leave do I have?") == []


async def test_nothing_crosses_between_two_groups(storage: Storage, tmp_path: Path, documents: StoredDocuments) -> None:
    """200 random steps of adding, asking, moving, removing and forgetting: a group finds its own documents alone."""
    chance = random.Random(54)
    indexer = KnowledgeIndexer(storage)
    chats = {"-100": GROUP, "-200": OTHER}
    held: dict[str, set[str]] = {"-100": set(), "-200": set()}
    (tmp_path / "third.md").write_text("The quartz of others stands in the cellar of the old mill.")
    await indexer.add(str(tmp_path / "third.md"), readers=("telegram:-300",))
    for number in range(200):
        chat, other = chance.sample(sorted(held), 2)
        context = await AgentContext.get_or_create(storage, chats[chat])
        match chance.choice(("add", "ask", "ask", "move", "remove", "forget")):
            case "add":
                word = f"quartz{number}"
                (tmp_path / f"{word}.md").write_text(f"The {word} stands in the cellar of the old mill.")
                await indexer.add(str(tmp_path / f"{word}.md"), readers=(f"telegram:{chat}",))
                held[chat].add(word)
            case "move" if held[chat]:
                word = chance.choice(sorted(held[chat]))
                await indexer.add(str(tmp_path / f"{word}.md"), readers=(f"telegram:{other}",))
                held[chat].remove(word)
                held[other].add(word)
            case "remove" if held[chat]:
                word = chance.choice(sorted(held[chat]))
                await storage.write(lambda c, word=word: delete_source(c, word))
                held[chat].remove(word)
            case "forget":
                await context.chat_history.append_user_message("Where does it stand?", author=GUEST)
                await forget_chat(storage, context.id)
            case _:
                ids = await storage.read(lambda c: list(c.execute(select(knowledge_passages.c.id)).scalars()))
                assert {each.source for each in await documents.get(ids, context)} == held[chat]
                for word in sorted(held["-100"] | held["-200"]):
                    found = " ".join(await texts(documents, context, f"Where does the {word} stand?"))
                    assert (word in found) == (word in held[chat])
                    assert not any(each in found for each in held[other])


async def test_passages_are_deleted_with_their_document(storage: Storage, folder: Path) -> None:
    source, _ = await KnowledgeIndexer(storage).add(str(folder), readers=("all",))
    ids = await storage.read(lambda c: list(c.execute(select(knowledge_passages.c.id)).scalars()))
    assert len(await storage.read(lambda c: list_passages(c, ids))) == len(ids) == 3
    (folder / "handbook.md").unlink()
    await KnowledgeIndexer(storage).refresh(source)
    assert len(await storage.read(lambda c: list_passages(c, ids))) == 1


async def test_a_press_shows_the_passage_where_it_may_be_read(
    storage: Storage, folder: Path, documents: StoredDocuments
) -> None:
    await KnowledgeIndexer(storage).add(str(folder), readers=("telegram:-100",))
    context = await AgentContext.get_or_create(storage, GROUP)
    [passage] = await documents.find("How many days of leave do I have?", context, k=5)
    llm = ScriptedChatLLM([f"28 days [D{passage.id}]"] * 2)
    service = AgentService(FunctionsBasedAgent(llm=llm, knowledge=documents), storage)
    answer = await service.prompt(context, "How many days of leave do I have?")
    assert [(each.text, each.says) for each in answer.buttons] == [("Show sources", f"/passage {passage.id}")]
    other = await AgentContext.get_or_create(storage, OTHER)
    assert "Everyone has" in await command(storage, context, f"/passage {passage.id}")
    for chat, asked in ((other, str(passage.id)), (context, "0"), (context, "x"), (context, "9" * 18)):
        assert "no longer exists" in await command(storage, chat, f"/passage {asked}")


async def test_an_owner_adds_the_file_that_was_sent_and_says_who_may_read_it(
    storage: Storage, documents: StoredDocuments
) -> None:
    own = await asked_by(storage, {"transport": "telegram", "chat_id": "42"}, OWNER)
    assert "Send a document first" in await command(storage, own, "/learn", OWNER)
    file = Attachment(OfficeReader.MIME_TYPES[".docx"], "plan.docx", office.docx("# Plan", "The festival is in May."))
    await own.chat_history.append_user_message("here", author=OWNER, attachments=[file])
    assert "owner" in await command(storage, own, "/learn all", GUEST)
    assert await command(storage, own, "/learn", OWNER) == "Who may read plan.docx?"
    assert await storage.read(list_sources) == []
    assert await command(storage, own, "/learn owners", OWNER) == "Added plan.docx (1 passage)."
    group = await AgentContext.get_or_create(storage, GROUP)
    assert await texts(documents, group, "When is the festival?") == []
    assert await texts(documents, own, "When is the festival?") == ["The festival is in May."]
    assert await command(storage, own, "/learn all", OWNER) == "Added plan.docx (1 passage)."
    assert await texts(documents, group, "When is the festival?") == ["The festival is in May."]
