"""Which messages the selectors take, to the letter of the contract."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice import Message, MessageWindowMessageSelector, NoMessages, Role, TokenWindowMessageSelector
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.llm.tokens import counter_for

NOW = datetime(2025, 1, 1, tzinfo=UTC)

messages = st.lists(
    st.builds(
        Message,
        id=st.integers(1),
        role=st.sampled_from(Role),
        text=st.text(max_size=20),
        created_at=st.just(NOW),
        token_count=st.integers(0, 20),
    ),
    max_size=30,
)


def said(chat):
    return [message for message in chat if message.role in (Role.USER, Role.ASSISTANT)]


def message(text="x", role=Role.USER, tokens=None):
    return Message(role=role, text=text, created_at=NOW, token_count=tokens)


@given(messages)
def test_no_messages_takes_none(chat):
    assert NoMessages().get_messages(chat) == []


@given(messages, st.integers(0, 40))
def test_a_window_is_the_newest_k_of_what_was_said_oldest_first(chat, k):
    expected = said(chat)[-k:] if k else []
    assert MessageWindowMessageSelector(k).get_messages(chat) == expected
    assert MessageWindowMessageSelector(k).get_messages(tuple(chat)) == expected


@given(messages, st.integers(0, 200))
def test_a_token_window_is_the_longest_unbroken_run_that_fits(chat, max_tokens):
    taken = TokenWindowMessageSelector(max_tokens).get_messages(chat)
    whole = said(chat)
    assert taken == whole[len(whole) - len(taken) :]
    assert sum(each.token_count for each in taken) <= max_tokens
    if len(taken) < len(whole):
        longer = whole[len(whole) - len(taken) - 1 :]
        assert sum(each.token_count for each in longer) > max_tokens


@given(messages, st.integers(0, 40))
def test_selectors_change_nothing_and_return_lists(chat, number):
    before = list(chat)
    for selector in (NoMessages(), MessageWindowMessageSelector(number), TokenWindowMessageSelector(number)):
        taken = selector.get_messages(chat)
        assert type(taken) is list
        assert taken is not chat
        assert chat == before


def test_an_exact_fit_is_in():
    chat = [message("a", tokens=3), message("b", tokens=4), message("c", tokens=3)]
    assert TokenWindowMessageSelector(7).get_messages(chat) == chat[1:]
    assert TokenWindowMessageSelector(10).get_messages(chat) == chat
    assert TokenWindowMessageSelector(9).get_messages(chat) == chat[1:]


def test_nothing_older_slips_past_one_that_is_too_large():
    chat = [message("small", tokens=1), message("large", tokens=100), message("new", tokens=2)]
    assert TokenWindowMessageSelector(50).get_messages(chat) == chat[2:]
    assert TokenWindowMessageSelector(1).get_messages(chat) == []


def test_system_and_tool_messages_neither_count_nor_break_a_run():
    between = [message("note", Role.SYSTEM, 1_000), message("result", Role.TOOL, 1_000)]
    chat = [message("a", tokens=1), *between, message("b", Role.ASSISTANT, 1), *between]
    assert TokenWindowMessageSelector(2).get_messages(chat) == [chat[0], chat[3]]
    assert MessageWindowMessageSelector(2).get_messages(chat) == [chat[0], chat[3]]


def test_messages_without_a_count_are_counted():
    counter = counter_for()
    chat = [message("one two three"), message("four five")]
    both = counter.count("one two three") + counter.count("four five")
    assert TokenWindowMessageSelector(both).get_messages(chat) == chat
    assert TokenWindowMessageSelector(both - 1).get_messages(chat) == chat[1:]


def test_messages_without_tokens_fit_into_nothing():
    chat = [message("a", tokens=1), message("", tokens=0)]
    assert TokenWindowMessageSelector(0).get_messages(chat) == chat[1:]


@pytest.mark.parametrize("selector", [MessageWindowMessageSelector, TokenWindowMessageSelector])
def test_a_negative_number_is_refused(selector):
    with pytest.raises(ValueError, match="0 or more, not -1"):
        selector(-1)


def test_selectors_take_their_number_by_position_and_by_name():
    assert MessageWindowMessageSelector(3) == MessageWindowMessageSelector(k=3)
    assert TokenWindowMessageSelector(3) == TokenWindowMessageSelector(max_tokens=3)


@pytest.mark.any_database
async def test_stored_counts_of_another_encoding_are_counted_again(context, storage):
    counter = counter_for()

    def write(connection):
        for encoding, count in (("some other", 1_000_000), (counter.name, 5), (None, None)):
            new = NewMessage(Role.USER, "one two", NOW, token_count=count, token_encoding=encoding)
            insert_message(connection, context.id, new)

    await storage.write(write)
    history = context.chat_history
    real = counter.count("one two")
    assert [each.token_count for each in await history.messages()] == [real, 5, real]
    taken = await history.select_messages(TokenWindowMessageSelector(2 * real + 5))
    assert [each.token_count for each in taken] == [real, 5, real]
    assert len(await history.select_messages(TokenWindowMessageSelector(2 * real + 4))) == 2


@pytest.mark.any_database
async def test_a_users_own_selector_may_return_any_kind_of_sequence(context):
    class Questions:
        def get_messages(self, messages):
            return (each for each in messages if each.text.endswith("?"))

    history = context.chat_history
    for text in ("one?", "two", "three?"):
        await history.append_user_message(text)
    assert [each.text for each in await history.select_messages(Questions())] == ["one?", "three?"]


@pytest.mark.any_database
async def test_what_a_selector_raises_reaches_the_caller_and_harms_nobody_else(context):
    class Broken:
        def get_messages(self, messages):
            raise LookupError("mine")

    await context.chat_history.append_user_message("a")
    for _ in range(5):
        with pytest.raises(LookupError, match="mine"):
            await context.chat_history.select_messages(Broken())
    assert len(await context.chat_history.select_messages(MessageWindowMessageSelector(3))) == 1


async def test_an_empty_history_gives_empty_lists(context):
    for selector in (NoMessages(), MessageWindowMessageSelector(3), TokenWindowMessageSelector(100)):
        assert await context.chat_history.select_messages(selector) == []
        assert selector.get_messages([]) == []
