"""The oracle is not blind: whatever a service may do wrong, it counts."""

import dataclasses

import pytest

from botservice.proving.checker import (
    BotMessage,
    Findings,
    Killed,
    OrderAnswer,
    Paid,
    PersonMessage,
    SimulationRecord,
    examine,
)


def said(order, at, *, pays=False):
    return PersonMessage(order, order.partition("-")[0], at, pays)


def shown(order, at, *, process="a1", answer=OrderAnswer.NOTED, chat=None):
    return BotMessage(order, chat or order.partition("-")[0], at, process, answer)


def record_of(*notes, ended_alone=()):
    kept = SimulationRecord(ended_alone=list(ended_alone))
    for note in notes:
        match note:
            case PersonMessage():
                kept.say(note)
            case BotMessage():
                kept.show(note)
            case Paid():
                kept.paid.append(note)
            case Killed():
                kept.killed.append(note)
    return kept


GOOD = (
    said("p1-1", 1),
    said("p1-2", 2, pays=True),
    said("g1-1", 2),
    Paid("p1-2", 3, "a1"),
    shown("p1-1", 3),
    shown("p1-2", 4, answer=OrderAnswer.PAID),
    shown("g1-1", 9.5),
)


def without(order):
    return [each for each in GOOD if not (isinstance(each, BotMessage) and each.order == order)]


def faults_of(*notes, ended_alone=()) -> dict[str, int]:
    """What the oracle finds that must not be."""
    found = examine(record_of(*notes, ended_alone=ended_alone))
    wrong = ("lost", "twice", "out_of_order", "strange", "paid_twice", "told_wrongly", "ended_alone")
    values = dataclasses.asdict(found)
    kept = {name: values[name] for name in wrong if values[name]}
    assert found.faults == sum(kept.values())
    return kept


def test_a_service_that_does_everything_right_has_no_faults():
    assert faults_of(*GOOD) == {}
    assert examine(record_of(*GOOD)) == Findings(
        messages=3, once=3, lost=0, again=0, twice=0, out_of_order=0, strange=0, to_pay=1, paid=1, paid_twice=0,
        in_doubt=0, told_wrongly=0, kills=0, ended_alone=0, longest_wait=7.5,
    )  # fmt: skip


def test_an_answer_that_never_comes_is_lost():
    assert faults_of(*without("p1-1")) == {"lost": 1}


def test_an_answer_that_comes_twice_is_counted():
    assert faults_of(*GOOD, shown("p1-2", 5, answer=OrderAnswer.PAID)) == {"twice": 1}


def test_an_answer_may_come_again_after_its_process_was_killed_while_sending_it():
    again = examine(record_of(*GOOD, Killed("a1", 4.1), shown("p1-2", 6, process="a2", answer=OrderAnswer.PAID)))
    assert (again.again, again.twice, again.faults) == (1, 0, 0)


@pytest.mark.parametrize(
    ("killed", "process"),
    [
        (Killed("a1", 4.1), "a1"),  # the dead show nothing
        (Killed("b1", 4.1), "a2"),  # another one was killed
        (Killed("a1", 20), "a2"),  # long after it was sent
        (Killed("a1", 40), "a2"),  # after it was shown again
    ],
)
def test_a_kill_that_explains_nothing_excuses_nothing(killed, process):
    assert faults_of(*GOOD, killed, shown("p1-2", 30, process=process, answer=OrderAnswer.PAID)) == {"twice": 1}


def test_an_answer_that_overtakes_another_one_of_its_chat_is_out_of_order():
    assert faults_of(*without("p1-1"), shown("p1-1", 5)) == {"out_of_order": 1}


def test_chats_do_not_wait_for_each_other():
    assert faults_of(*without("g1-1"), shown("g1-1", 2.5)) == {}


def test_an_answer_in_the_wrong_chat_is_strange_and_its_question_lost():
    assert faults_of(*without("p1-1"), shown("p1-1", 3, chat="g1")) == {"strange": 1, "lost": 1}


def test_an_answer_to_what_nobody_said_is_strange():
    assert faults_of(*GOOD, shown("p1-7", 9)) == {"strange": 1}


def test_a_second_payment_is_counted_whatever_is_said_of_it():
    assert faults_of(*GOOD, Paid("p1-2", 3.5, "a2")) == {"paid_twice": 1}


def test_a_payment_that_nobody_asked_for_is_told_wrongly():
    assert faults_of(*GOOD, Paid("p1-1", 3.5, "a1")) == {"told_wrongly": 1}


@pytest.mark.parametrize("answer", [OrderAnswer.NOTED, OrderAnswer.OTHER, OrderAnswer.IN_DOUBT])
def test_whoever_asks_for_a_payment_is_told_whether_it_was_made(answer):
    assert faults_of(*without("p1-2"), shown("p1-2", 4, answer=answer)) == {"told_wrongly": 1}


def test_a_payment_that_was_never_made_must_not_be_called_paid():
    notes = [each for each in GOOD if not isinstance(each, Paid)]
    assert faults_of(*notes) == {"told_wrongly": 1}


def test_only_a_kill_excuses_a_doubt():
    doubt = shown("p1-2", 6, process="a2", answer=OrderAnswer.IN_DOUBT)
    found = examine(record_of(*without("p1-2"), Killed("a1", 3.2), doubt))
    assert (found.in_doubt, found.faults) == (1, 0)
    assert faults_of(*without("p1-2"), Killed("a1", 7), doubt) == {"told_wrongly": 1}


def test_a_process_that_ends_by_itself_is_a_fault():
    assert faults_of(*GOOD, ended_alone=["a1"]) == {"ended_alone": 1}


def test_a_town_that_says_nothing_proves_nothing():
    assert examine(SimulationRecord()).faults == 1
