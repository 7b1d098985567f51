"""The reader that judges prompts: what it takes for an answer, and what misleads it."""

import pytest
from memory_quality.chats import Asked
from memory_quality.reader import Verdict, judge

from botservice.agent.prompt import Prompt

MOVED = Asked("update", "where do I live?", ((("in hull",), ()),), outdated=("leeds",))
RAN = Asked("count", "how often did I run in May?", ((("bridge",), ("2026-05",)), (("estuary",), ("2026-05-03",))))
ALLERGY = Asked("none", "what am I allergic to?", lure=("peanut",))


def prompt(**sections):
    made = Prompt()
    for name, text in sections.items():
        made.add_section(name, [{"role": "user", "content": text}])
    return made


def found(*records):
    return "\n".join(["Remembered.", "<memory>", *records, "</memory>"])


@pytest.mark.parametrize(
    ("sections", "verdict"),
    [
        ({"found": found("[2026-04-05 21:30 UTC] Nora: the new flat in Hull")}, Verdict.ANSWERED),
        ({"window": "the new flat in\nHull"}, Verdict.ANSWERED),
        ({"system": "She lives in Hull"}, Verdict.MISSING),
        ({"question": "is it in Hull?"}, Verdict.MISSING),
        ({"found": found("[2026-02-08 18:10 UTC] Nora: I live in Leeds")}, Verdict.MISLED),
        (
            {"person": "Known.\n[#1, 2026-02-08 to 2026-04-05] I live in Leeds\n[#2, 2026-04-05] flat in Hull"},
            Verdict.ANSWERED,
        ),
        ({"person": "Known.\n[#1] I live in Leeds\n[#2, 2026-04-05] flat in Hull"}, Verdict.MISLED),
        ({"found": "nothing in a record says in Hull"}, Verdict.MISSING),
    ],
)
def test_what_has_changed_is_answered_by_the_newer_where_the_older_is_dated(sections, verdict):
    assert judge(prompt(**sections), MOVED) is verdict


def test_counting_needs_every_event_with_its_date():
    both = found("[2026-05-03 10:20 UTC] Nora: ran along the estuary", "[2026-05-12 18:45 UTC] Nora: over the bridge")
    one = found("[2026-05-03 10:20 UTC] Nora: ran along the estuary", "[2026-06-12 18:45 UTC] Nora: over the bridge")
    assert judge(prompt(found=both), RAN) is Verdict.ANSWERED
    assert judge(prompt(found=one), RAN) is Verdict.MISSING
    assert judge(prompt(window="ran along the estuary and over the bridge"), RAN) is Verdict.MISSING


def test_in_a_note_of_several_days_the_date_before_an_event_is_its_own():
    right = "Notes.\n[N1, 2026-05-01 to 2026-06-12] 2026-05-03 along the estuary; 2026-05-12 over the bridge"
    wrong = "Notes.\n[N1, 2026-05-01 to 2026-06-12] 2026-05-03 along the estuary; 2026-06-12 over the bridge"
    assert judge(prompt(notes=right), RAN) is Verdict.ANSWERED
    assert judge(prompt(notes=wrong), RAN) is Verdict.MISSING


def test_what_is_true_of_another_misleads_where_it_is_kept_of_the_asker():
    assert judge(prompt(found=found("[2026-02-21 20:02 UTC] Nora: Edith ate a peanut")), ALLERGY) is Verdict.ANSWERED
    assert judge(prompt(person="Known.\n[#1, 2026-02-21] allergic to peanut"), ALLERGY) is Verdict.MISLED


def test_the_number_of_a_record_is_nothing_that_it_says():
    size = Asked("none", "what is my shoe size?", lure=("47",))
    assert judge(prompt(person="Known.\n[#47, 2026-02-21] I like olives"), size) is Verdict.ANSWERED
