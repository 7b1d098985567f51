"""One context for the same keys, whoever asks for it and however often at once."""

import asyncio
import hashlib
import json
from datetime import UTC, datetime

import pytest
from crash.together import run_together, say_first
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, insert, text
from standins.patience import PATIENT

from botservice import AgentContext, AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.cli.contexts import find_context_id
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.snapshots import read_snapshot
from botservice.core.errors import InvalidContextKeys, StorageError
from botservice.devtools.conversations import export_context, list_contexts
from botservice.storage.tables.conversations import contexts, turns
from transports.web.inspector_turn_lines import read_titles

any_text = st.text(st.characters(exclude_categories=[]), max_size=8)
any_keys = st.dictionaries(any_text, any_text, min_size=1, max_size=4)


@given(any_keys, st.randoms())
def test_the_order_of_keys_does_not_matter(keys, random):
    items = list(keys.items())
    random.shuffle(items)
    assert ContextKeys.of(dict(items)).digest == ContextKeys.of(keys).digest


@given(any_keys, any_keys)
def test_other_keys_are_another_context(one, other):
    same = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (ContextKeys.of(one).digest == ContextKeys.of(other).digest) is same


ODD_KEYS = [
    {"a": "1"},
    {"a": "1", "b": "2"},
    {"a": "1", "b": ""},
    {"a": ""},
    {"": ""},
    {"a": "1,b:2"},
    {'a"': '"1'},
    {"a'": "'; DROP TABLE contexts; --"},
    {"a": "\\"},
    {"a": "\u00e9"},
    {"a": "e\u0301"},
    {"a": "🦙"},
    {"a": "\0"},
    {"a": "\ud800"},
    {"a": "\udc00"},
    {"a": "\ufffd"},
    {"a": "x" * 4_000},
    {"a": "x" * 4_001},
    {"A": "1"},
]


async def test_any_strings_are_keys_and_each_set_of_them_is_its_own_context(storage):
    ids = [(await AgentContext.get_or_create(storage, keys)).id for keys in ODD_KEYS]
    assert len(set(ids)) == len(ODD_KEYS)
    assert [(await AgentContext.get_or_create(storage, keys)).id for keys in ODD_KEYS] == ids
    loaded = await AgentContext.load(storage, ids[7])
    assert dict(loaded.context_keys) == ODD_KEYS[7]
    lone = await AgentContext.load(storage, ids[13])
    assert dict(lone.context_keys) == {"a": "\ufffd"}


@pytest.mark.parametrize("keys", [{"a": "\0"}, {"a\0b": "1"}, {"a": "\ufffd"}])
async def test_what_is_read_of_a_context_names_it_and_no_other(storage, keys):
    for other in ({"a": "\ufffd"}, {"a": "\0"}, {"a\ufffdb": "1"}):
        await AgentContext.get_or_create(storage, other)
    context = await AgentContext.get_or_create(storage, keys)
    loaded = await AgentContext.load(storage, context.id)
    assert dict(loaded.context_keys) == keys
    assert (await AgentContext.get_or_create(storage, loaded.context_keys)).id == context.id


JSON_KEYS = [
    {},
    {"a": 1},
    {"a": 1.0},
    {"a": True},
    {"a": "1"},
    {"a": None},
    {"a": "null"},
    {"a": []},
    {"a": {}},
    {"a": [1, {"b": ["c", None]}]},
    {"user": {"id": 7, "tenant": "x"}, "list": [1, 2.5, "3"]},
    {"a": 10**30},
]


async def test_any_json_object_is_a_key_and_no_two_values_are_taken_for_each_other(storage):
    ids = [(await AgentContext.get_or_create(storage, keys)).id for keys in JSON_KEYS]
    assert len(set(ids)) == len(JSON_KEYS)
    assert [repr(dict((await AgentContext.load(storage, each)).context_keys)) for each in ids] == [
        repr(dict(sorted(keys.items()))) for keys in JSON_KEYS
    ]


async def test_nested_keys_are_one_context_in_any_order(storage):
    one = await AgentContext.get_or_create(storage, {"a": {"x": 1, "y": (2, 3)}, "b": None})
    same = await AgentContext.get_or_create(storage, {"b": None, "a": {"y": [2, 3], "x": 1}})
    assert one.id == same.id
    assert same.context_keys["a"] == {"x": 1, "y": [2, 3]}


@pytest.mark.parametrize("keys", JSON_KEYS)
async def test_a_bot_answers_and_exports_in_a_context_with_any_json_keys(sqlite_storage, keys):
    context = await AgentContext.get_or_create(sqlite_storage, keys)
    service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM(["Hello."])), sqlite_storage)
    assert (await service.prompt(context, "Hi", author="Ann")).text == "Hello."
    assert (await export_context(sqlite_storage, context.id))["context"]["keys"] == keys
    titles = await sqlite_storage.read(lambda connection: read_titles(connection, [context.id]))
    assert titles[context.id].text


DEEP = {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": 1}}}}}}}}}
ENDLESS: dict = {}
ENDLESS["a"] = ENDLESS


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        (None, "must be a mapping"),
        ("chat_id", "must be a mapping"),
        ([("a", "b")], "must be a mapping"),
        ({1: "a"}, "names in context keys must be strings: use '1'"),
        ({"a": {None: 1}}, "names in context keys must be strings"),
        ({"a": b"b"}, "must be JSON values"),
        ({"a": {1, 2}}, "must be JSON values"),
        ({"a": float("nan")}, "must be JSON values, and nan"),
        ({"a": float("-inf")}, "must be JSON values"),
        ({"a": "x" * 4_097}, "must not exceed 4096 bytes"),
        ({"a": 10**5_000}, "numbers in context keys must not exceed"),
        ({"a": -(10**5_000)}, "numbers in context keys must not exceed"),
        (DEEP, "deeper than 8 levels"),
        (ENDLESS, "deeper than 8 levels"),
    ],
)
async def test_what_is_no_json_object_is_refused_by_name(sqlite_storage, keys, told):
    with pytest.raises(InvalidContextKeys, match=told):
        await AgentContext.get_or_create(sqlite_storage, keys)
    assert await list_contexts(sqlite_storage) == []


def test_keys_of_strings_have_the_digest_that_they_had_before():
    keys = {"transport": "telegram", "chat_id": "4\u00fc2"}
    text = json.dumps(dict(sorted(keys.items())), separators=(",", ":"))
    assert ContextKeys.of(keys).digest == hashlib.sha256(text.encode()).hexdigest()


async def test_a_context_with_longer_keys_of_an_older_release_keeps_them(storage):
    keys = ContextKeys.of({"a": "x" * 5_000})
    row = {"key_hash": keys.digest, "context_keys": dict(keys.values), "metadata": {}, "created_at": storage.now()}
    await storage.write(lambda connection: connection.execute(insert(contexts).values(row)))
    assert dict((await AgentContext.get_or_create(storage, keys.values)).context_keys) == dict(keys.values)


async def test_a_context_is_found_by_a_number_among_its_keys(sqlite_storage):
    await AgentContext.get_or_create(sqlite_storage, {"chat_id": 421})
    wanted = await AgentContext.get_or_create(sqlite_storage, {"tenant": "x", "chat_id": 42})
    assert await find_context_id(sqlite_storage, "chat_id=42") == wanted.id


@pytest.mark.any_database
async def test_keys_cannot_be_changed_afterwards(context):
    with pytest.raises(TypeError):
        context.context_keys["chat_id"] = "2"


async def test_two_first_messages_at_once_make_one_context(storage_url):
    keys = {"transport": "test", "chat_id": "new"}
    async with Storage.open(storage_url, limits=PATIENT) as one, Storage.open(storage_url, limits=PATIENT) as two:
        found = await asyncio.gather(*(AgentContext.get_or_create(each, keys) for each in (one, two) * 10))
        assert len({context.id for context in found}) == 1
        await asyncio.gather(*(context.chat_history.append_user_message("first") for context in found))
        assert len(await found[0].chat_history.messages()) == 20
        assert len(await list_contexts(one)) == 1


@pytest.mark.slow
async def test_two_processes_make_one_context(storage_url):
    await run_together(2, say_first, storage_url, 20)
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        assert [each.message_count for each in await list_contexts(storage)] == [2] * 20


@pytest.mark.any_database
async def test_a_context_that_does_not_exist_cannot_be_loaded(storage):
    with pytest.raises(StorageError, match="there is no context 99"):
        await AgentContext.load(storage, 99)


@settings(max_examples=20, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(metadata=st.dictionaries(any_text, st.recursive(st.none() | st.booleans() | st.integers() | any_text, st.lists)))
async def test_metadata_comes_back_as_it_was(sqlite_storage, metadata):
    context = await AgentContext.get_or_create(sqlite_storage, {"chat_id": "metadata"})
    context.metadata = metadata
    await context.save_metadata()
    assert (await AgentContext.load(sqlite_storage, context.id)).metadata == json.loads(json.dumps(metadata))


async def test_metadata_is_kept_on_both_databases(storage, context):
    context.metadata["odd"] = {"nul": "\0", "lone": "\ud800", "nested": [1, 2.5, None, True]}
    await context.save_metadata()
    assert (await AgentContext.load(storage, context.id)).metadata == context.metadata


@pytest.mark.parametrize("length", [10, 100_000])  # SQLite reads the one where it is asked, and the other in a thread
async def test_the_steps_of_the_last_turn_come_back_however_long(storage: Storage, length: int) -> None:
    service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM(["é" * length])), storage)
    context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
    await service.prompt(context, "hi")
    again = await AgentContext.get_or_create(storage, {"chat_id": "1"})
    assert again.memory == context.memory
    assert again.memory.steps[-1].model_input_messages == context.memory.steps[-1].model_input_messages
    assert (again.turn_id, again.chat_history.last_user_message) == (
        context.turn_id,
        context.chat_history.last_user_message,
    )


async def test_a_context_is_read_by_its_newest_turn_however_many_there_are(postgres_storage: Storage) -> None:
    context, now = await AgentContext.get_or_create(postgres_storage, {"chat_id": "1"}), datetime.now(UTC)
    row = {"context_id": context.id, "transport": "api", "status": "done", "order_key": 0, "due_at": now}
    row |= {"created_at": now, "started_at": now, "keeps_steps": False}
    looked_at = text("SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'turns'")

    def read(connection: Connection) -> int:
        for way in ("seqscan", "bitmapscan", "sort"):  # so few rows would be read whole, which says nothing
            connection.execute(text(f"SET LOCAL enable_{way} = off"))
        read_snapshot(connection, context.id)
        found: int = connection.execute(looked_at).scalar_one()
        return found

    await postgres_storage.write(lambda connection: connection.execute(insert(turns), [row] * 300))
    assert 0 < await postgres_storage.read(read) < 20
