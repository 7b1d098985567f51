"""What implements a port of ours is taken whether it inherits or not, and what it leaves out has the port's default."""

from botservice.core.adapters import adopt
from botservice.turns.transport import Live, Transport


class Own(Transport):
    name = "own"


class Foreign:
    name = "foreign"

    def was_spoken(self, events):
        return bool(events)


async def test_what_inherits_is_taken_as_it_is():
    own = Own()
    assert adopt(Transport, own) is own


async def test_what_does_not_inherit_keeps_its_members_and_gets_the_defaults_of_others():
    given = Foreign()
    taken = adopt(Transport, given)
    assert isinstance(taken, Transport)
    assert (taken.name, taken.was_spoken(["one"]), taken.is_shared({}), taken.has_topics) == (
        "foreign",
        True,
        False,
        False,
    )
    assert taken.describe() == "foreign"  # a default that uses what is given
    given.has_topics = True
    assert taken.has_topics


def test_a_live_answer_that_knows_no_calls_takes_them_as_activities():
    class Shown(Live):
        def __init__(self):
            self.seen = []

        def on_activity(self, activity):
            self.seen.append(activity)

    class Call:
        name = "add"

    shown = Shown()
    shown.on_call(Call())
    shown.on_call_end(Call(), is_error=False)
    assert shown.seen == ["add"]
