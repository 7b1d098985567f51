from transports.newest import Newest


def test_the_oldest_entry_makes_room_and_one_that_is_set_again_needs_none() -> None:
    kept: Newest[str, int] = Newest(2)
    for key, value in [("a", 1), ("b", 2), ("a", 3)]:
        kept[key] = value
    assert dict(kept) == {"a": 3, "b": 2}
    kept["c"] = 4
    assert dict(kept) == {"b": 2, "c": 4}
