"""When reminders are due, by the clocks of places."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice.conversation.reminder import Repeats, next_time, read_moment, spell
from botservice.conversation.time_zones import find_zone, refuse_zone, stored_zone

MADRID = ZoneInfo("Europe/Madrid")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-05-01T14:00", "2026-05-01T12:00+00:00"),
        (" 2026-05-01 14:00 ", "2026-05-01T12:00+00:00"),
        ("2026-05-01T14:00Z", "2026-05-01T14:00+00:00"),
        ("2026-05-01T14:00:30-03:00", "2026-05-01T17:00:30+00:00"),
        ("2026-12-01T14:00", "2026-12-01T13:00+00:00"),
        ("2026-03-29T02:30", "2026-03-29T01:30+00:00"),  # an hour that the clocks there leave out
    ],
)
def test_a_time_is_that_of_the_place_unless_it_says_otherwise(text, moment):
    assert read_moment(text, MADRID) == datetime.fromisoformat(moment)


@pytest.mark.parametrize(
    "text", ["", "tomorrow", "2026-05-01", "14:00", "2026-02-30T10:00", "0001-01-01T00:00", "9" * 99]
)
def test_what_is_no_date_with_a_time_is_no_moment(text):
    assert read_moment(text, ZoneInfo("Asia/Tokyo")) is None


@pytest.mark.parametrize("name", ["", "Nowhere", "America", "../etc/passwd", "/etc/passwd", "a\0b"])
def test_what_is_no_time_zone_is_none(name):
    assert find_zone(name) is None


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("Europe/Madird", "did you mean Europe/Madrid?"),
        ("madrid", "did you mean Europe/Madrid?"),
        ("Asia/Calcuta", "did you mean Asia/Calcutta?"),
        ("UTC+2", "give an IANA name"),  # and not Etc/GMT+2, which is behind UTC
        ("PST", "give an IANA name"),
        ("x" * 9_000, "give an IANA name"),
    ],
)
def test_a_mistyped_zone_is_refused_with_the_nearest_one(name, says):
    said = refuse_zone(name)
    assert says in said
    assert len(said) < 200


def test_a_stored_zone_that_this_machine_does_not_know_is_utc_and_logged(caplog):
    assert stored_zone("Mars/Base") is UTC
    assert "reminder.time_zone_unknown" in caplog.messages
    assert stored_zone("Europe/Madrid") is MADRID


def test_the_time_of_day_stays_where_clocks_are_changed():
    first = datetime(2026, 3, 27, 8, tzinfo=MADRID).astimezone(UTC)
    times = [first]
    for _ in range(4):
        times.append(next_time(first, Repeats.DAILY, MADRID, times[-1]))
    assert [each.astimezone(MADRID).hour for each in times] == [8] * 5
    assert [each.hour for each in times] == [7, 7, 6, 6, 6]


def test_an_hour_that_a_day_leaves_out_moves_that_day_alone():
    first = datetime(2026, 3, 28, 2, 30, tzinfo=MADRID).astimezone(UTC)
    second = next_time(first, Repeats.DAILY, MADRID, first)
    third = next_time(first, Repeats.DAILY, MADRID, second)
    assert second.astimezone(MADRID).strftime("%d %H:%M") == "29 03:30"
    assert third.astimezone(MADRID).strftime("%d %H:%M") == "30 02:30"


def test_weekdays_leave_out_saturday_and_sunday():
    friday = datetime(2026, 5, 1, 8, tzinfo=UTC)
    assert next_time(friday, Repeats.WEEKDAYS, ZoneInfo("UTC"), friday) == friday + timedelta(days=3)


@given(
    ago=st.timedeltas(timedelta(), timedelta(days=20_000)),
    passed=st.timedeltas(timedelta(days=-3), timedelta(days=4000)),
    repeats=st.sampled_from(Repeats),
    zone=st.sampled_from(["UTC", "Europe/Madrid", "America/New_York", "Pacific/Apia", "Asia/Kathmandu"]),
)
def test_the_next_time_is_later_and_at_most_a_period_away(ago, passed, repeats, zone):
    first = datetime(2060, 1, 1, tzinfo=UTC) - ago
    after = first + passed
    found = next_time(first, repeats, ZoneInfo(zone), after)
    assert found > after
    longest = timedelta(days={Repeats.DAILY: 1, Repeats.WEEKDAYS: 3, Repeats.WEEKLY: 7}[repeats], hours=25)
    assert found - max(after, first - longest) <= longest


def test_a_moment_is_shown_with_its_place():
    moment = datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert spell(moment, "UTC") == "2026-05-01 12:00 UTC"
    assert spell(moment, "Europe/Madrid") == "2026-05-01 14:00 (Europe/Madrid)"
    assert spell(moment, "Gone/Place") == "2026-05-01 12:00 UTC"
