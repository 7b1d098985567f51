"""Lists of numbers in few characters."""

import json

from hypothesis import example, given
from hypothesis import strategies as st

from botservice.conversation.field_codec import lengthen, shorten


@given(st.lists(st.integers(-(2**63), 2**63)))
@example([7, 7, 7, 7])
@example([0, 0, 0])
def test_numbers_come_back_from_json_as_they_were(numbers):
    assert lengthen(json.loads(json.dumps(shorten(numbers)))) == numbers


def test_numbers_that_follow_each_other_take_one_pair():
    assert shorten(list(range(569, 589))) == [569, [19, 1]]
    assert shorten([8, 6, 4, 2, 3]) == [8, [3, -2], 1]
