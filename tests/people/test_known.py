"""Which facts of a person stand in a prompt: those that matter for the question, within their tokens."""

from datetime import UTC, datetime, timedelta

from botservice.people.facts import MAX_TOKENS, Fact, describe_person

START = datetime(2026, 1, 1, 9, tzinfo=UTC)


def fact(number, topic, text, *, ended_by=None):
    since = START + timedelta(days=number)
    until = None if ended_by is None else START + timedelta(days=ended_by)
    return Fact(number, topic, text, 1, False, since, since, superseded_at=until, valid_to=until, valid_from=since)


def shown(facts, question, count=lambda text: len(text) // 4):
    newest_first = sorted(facts, key=lambda each: (not each.is_current, -each.id))
    text = describe_person(newest_first, "Nora", question, count)
    assert count(text) <= MAX_TOKENS
    return text


def others(count, first=100):
    """Return things of little weight that were said later."""
    return [
        fact(number, f"possession: thing {number}", f"I own thing {number}") for number in range(first, first + count)
    ]


def test_what_answers_have_to_mind_stands_there_though_no_word_asks_for_it():
    known = [fact(1, "diet: meat", "I have stopped eating meat"), fact(2, "taste: crowds", "crowds make me dizzy")]
    text = shown([*known, *others(150)], "What could I make for dinner tonight?")
    assert "stopped eating meat" in text
    assert "crowds make me dizzy" in text


def test_what_took_the_place_of_a_found_fact_comes_with_it_and_the_ended_one_has_both_dates():
    known = [fact(1, "home", "I live in Leeds", ended_by=7), fact(7, "home", "the new flat in Hull is lovely")]
    text = shown([*known, *others(150)], "where do I live?")
    assert "[#7, 2026-01-08] home: the new flat in Hull is lovely" in text
    assert "[#1, 2026-01-02 to 2026-01-08] home: I live in Leeds" in text


def test_what_held_last_stands_there_though_much_else_is_newer():
    known = [fact(1, "home", "ich wohne in Kassel", ended_by=7), fact(7, "home", "nach Husum gezogen")]
    assert "wohne in Kassel" in shown([*known, *others(150)], "what was I called in the spring?")


def test_as_many_facts_as_there_is_room_for_stand_there_the_newest_first():
    text = shown(others(25), "what do I own?")
    assert all(f"thing {number}" in text for number in range(100, 125))
    few = shown(others(10), "hello")
    assert few.index("thing 109") < few.index("thing 100")


def test_the_newest_stand_there_whatever_is_asked():
    text = shown(others(180), "what is thing 101?")
    assert "thing 279" in text
    assert "thing 101" in text


def test_what_a_fact_says_itself_is_not_said_before_it():
    known = [
        fact(1, "taste: olives", "I think olives are overrated"),
        fact(2, "other: boss", "my boss is Farida"),
        fact(3, "habit: lessons", "we meet on Thursdays"),
        fact(4, "dog", "called Rex"),
    ]
    lines = shown(known, "hello").splitlines()
    assert "[#1, 2026-01-02] taste: I think olives are overrated" in lines
    assert "[#2, 2026-01-03] my boss is Farida" in lines
    assert "[#3, 2026-01-04] habit: lessons: we meet on Thursdays" in lines
    assert "[#4, 2026-01-05] dog: called Rex" in lines


def test_a_sentence_that_says_several_things_stands_there_once():
    said = "I bake bread in Leeds"
    known = [fact(1, "job", said), fact(2, "home", said), fact(3, "origin", said, ended_by=5)]
    assert shown(known, "hello").count(said) == 2  # as it is, and as it was
