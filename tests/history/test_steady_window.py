"""The window that begins at the same message for many turns."""

import random
from datetime import UTC, datetime
from itertools import accumulate, pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from botservice import AgentContext, Message, MessageWindowMessageSelector, Role, SteadyWindowMessageSelector
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.history.window import TokenWindowMessageSelector
from botservice.llm.tokens import counter_for

NOW = datetime(2025, 1, 1, tzinfo=UTC)


def number(said, gaps, *, has_ids=True):
    """Return messages of (role, tokens), with ids that grow by gaps: other chats speak in between."""
    ids = accumulate(gaps, initial=1)
    return [
        Message(next(ids) if has_ids else None, role, f"m{place}", created_at=NOW, token_count=tokens)
        for place, (role, tokens) in enumerate(said)
    ]


def chats(most_tokens=60, roles=tuple(Role), most=120):
    said = st.lists(st.tuples(st.sampled_from(roles), st.integers(0, most_tokens)), max_size=most)
    gaps = st.lists(st.integers(1, 40), min_size=most, max_size=most)
    return st.builds(number, said, gaps, has_ids=st.booleans())


def size(messages):
    return sum(each.token_count for each in messages)


def conversation(chat):
    return [each for each in chat if each.role in (Role.USER, Role.ASSISTANT)]


def talk(turns, tokens=lambda place: 50, gap=lambda place: 1):
    """Return a talk of questions and answers."""
    said = [((Role.USER, Role.ASSISTANT)[place % 2], tokens(place)) for place in range(2 * turns)]
    return number(said, [gap(place) for place in range(2 * turns)])


def beginnings(chat, max_tokens):
    """Return the first message of the window after each turn."""
    selector = SteadyWindowMessageSelector(max_tokens)
    return [selector.get_messages(chat[:end])[0] for end in range(2, len(chat) + 1, 2)]


def moves(chat, max_tokens):
    return sum(one is not other for one, other in pairwise(beginnings(chat, max_tokens)))


@given(chats(), st.integers(0, 1500))
def test_it_is_an_unbroken_run_of_the_newest_that_fits(chat, max_tokens):
    taken = SteadyWindowMessageSelector(max_tokens).get_messages(chat)
    whole = conversation(chat)
    assert type(taken) is list
    assert taken == whole[len(whole) - len(taken) :]
    assert size(taken) <= max_tokens


@given(chats(), st.integers(1, 1500))
def test_it_takes_at_least_half_where_the_chat_is_long_enough(chat, max_tokens):
    taken = SteadyWindowMessageSelector(max_tokens).get_messages(chat)
    fitting = TokenWindowMessageSelector(max_tokens).get_messages(chat)
    assert 2 * size(taken) >= min(max_tokens, 2 * size(fitting))
    if size(conversation(chat)) <= max_tokens:
        assert taken == conversation(chat)


@given(chats(roles=(Role.USER, Role.ASSISTANT)), st.integers(200, 1500))
def test_it_begins_with_a_person_where_one_spoke_in_the_older_half(chat, max_tokens):
    selector = SteadyWindowMessageSelector(max_tokens)
    taken = selector.get_messages(chat)
    fitting = TokenWindowMessageSelector(max_tokens).get_messages(chat)
    possible = [each for place, each in enumerate(fitting) if 2 * size(fitting[place:]) >= max_tokens]
    if len(fitting) < len(chat) and any(each.role is Role.USER for each in possible):
        assert taken[0].role is Role.USER


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_its_beginning_moves_seldom_and_never_back(seed):
    chance = random.Random(seed)
    chat = talk(150, lambda place: chance.randint(20, 120), lambda place: chance.choice([1, 2, 30]))
    max_tokens = 2000
    places = [chat.index(each) for each in beginnings(chat, max_tokens)]
    assert places == sorted(places)
    # The best that can be is a move for each half of a window.
    halves = 2 * size(chat) / max_tokens
    assert moves(chat, max_tokens) <= 3 * halves + 3


@pytest.mark.parametrize("gap", [1, 2, 7, 1000])
def test_a_chat_of_4000_tokens_stays_for_many_turns(gap):
    chat = talk(400, gap=lambda place: gap)
    assert moves(chat, 4000) <= 400 / 10
    assert max(size(SteadyWindowMessageSelector(4000).get_messages(chat[:end])) for end in range(0, 800, 7)) <= 4000


@given(chats(), st.integers(0, 1500))
def test_messages_without_ids_make_a_window_as_steady(chat, max_tokens):
    nameless = [Message(None, each.role, each.text, created_at=NOW, token_count=each.token_count) for each in chat]
    dense = [
        Message(place + 1, each.role, each.text, created_at=NOW, token_count=each.token_count)
        for place, each in enumerate(chat)
    ]
    selector = SteadyWindowMessageSelector(max_tokens)
    assert [each.text for each in selector.get_messages(nameless)] == [
        each.text for each in selector.get_messages(dense)
    ]


@given(chats(roles=(Role.USER, Role.ASSISTANT)), st.integers(100, 1500), st.data())
def test_deleting_what_is_older_than_the_window_by_far_changes_nothing(chat, max_tokens, data):
    selector = SteadyWindowMessageSelector(max_tokens)
    taken = selector.get_messages(chat)
    fitting = len(TokenWindowMessageSelector(max_tokens).get_messages(chat))
    old = chat[: max(0, len(chat) - fitting - 10)]
    if chat and chat[0].id is not None and old:
        gone = data.draw(st.sampled_from(old))
        assert selector.get_messages([each for each in chat if each is not gone]) == taken


def test_deleting_its_first_message_moves_it_by_a_turn():
    chat = talk(200)
    selector = SteadyWindowMessageSelector(4000)
    taken = selector.get_messages(chat)
    left = [each for each in chat if each is not taken[0]]
    again = selector.get_messages(left)
    assert again[0] in taken[1:4] or again[1:] == taken[1:]


def test_a_huge_message_ends_it_and_nothing_older_slips_past():
    chat = [*talk(30), Message(1000, Role.USER, "huge", created_at=NOW, token_count=3900)]
    small = [Message(1001 + n, Role.ASSISTANT, f"s{n}", created_at=NOW, token_count=60) for n in range(4)]
    selector = SteadyWindowMessageSelector(4000)
    assert selector.get_messages(chat) == chat[-1:]
    assert selector.get_messages([*chat, *small]) == small
    assert selector.get_messages([*chat, *small, *small]) == [*small, *small]
    alone = Message(1, Role.USER, "larger", created_at=NOW, token_count=4001)
    assert selector.get_messages([alone]) == []


def test_in_a_group_it_stays_too():
    group = number([(Role.USER if n % 5 else Role.ASSISTANT, 40) for n in range(600)], [3] * 600)
    selector = SteadyWindowMessageSelector(4000)
    first = [selector.get_messages(group[:end])[0] for end in range(1, 601)]
    assert sum(one is not other for one, other in pairwise(first)) <= 600 / 20


def test_it_takes_its_number_by_position_and_refuses_a_negative_one():
    assert SteadyWindowMessageSelector(3) == SteadyWindowMessageSelector(max_tokens=3)
    with pytest.raises(ValueError, match="0 or more, not -1"):
        SteadyWindowMessageSelector(-1)


class Watched(list):
    """A list that notes how much of it is read from its end."""

    looked_at = 0

    def __reversed__(self):
        for each in super().__reversed__():
            self.looked_at += 1
            yield each


def test_it_reads_hardly_more_than_fits():
    chat = Watched(talk(5000))
    SteadyWindowMessageSelector(4000).get_messages(chat)
    assert chat.looked_at <= 80 + 10


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(said=st.lists(st.tuples(st.sampled_from(Role), st.integers(0, 60)), max_size=80), max_tokens=st.integers(0, 900))
async def test_what_is_stored_gives_the_same_as_a_list(sqlite_storage, said, max_tokens):
    context = await AgentContext.get_or_create(sqlite_storage, {"n": str(next(chat_numbers))})
    encoding = counter_for().name

    def write(connection):
        for place, (role, tokens) in enumerate(said):
            new = NewMessage(role, f"m{place}", NOW, token_count=tokens, token_encoding=encoding)
            insert_message(connection, context.id, new)

    await sqlite_storage.write(write)
    selector = SteadyWindowMessageSelector(max_tokens)
    stored = await context.chat_history.select_messages(selector)
    every = await context.chat_history.select_messages(MessageWindowMessageSelector(1000))
    assert stored == selector.get_messages(every)


chat_numbers = iter(range(10**9))
