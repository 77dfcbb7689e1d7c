"""The calendar of jobs."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from kettle.jobs.crontab import FIELDS, crontab, next_run, numbers_of

MONDAY = "2024-01-01 10:30"


def seconds(text: str, zone: ZoneInfo | None = None) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone or UTC).timestamp())


@pytest.mark.parametrize(
    ("fields", "after", "expected"),
    [
        ({}, MONDAY, "2024-01-01 10:31"),
        ({"CronMinute": "0", "CronHour": "*/2"}, MONDAY, "2024-01-01 12:00"),
        ({"CronMinute": "30", "CronHour": "10"}, MONDAY, "2024-01-02 10:30"),
        ({"CronMinute": "15,45", "CronHour": "8-18/2"}, MONDAY, "2024-01-01 10:45"),
        ({"CronMinute": "0", "CronHour": "0", "CronDayOfMonth": "29", "CronMonth": "2"}, MONDAY, "2024-02-29 00:00"),
        ({"CronMinute": "0", "CronHour": "0", "CronDayOfMonth": "29", "CronMonth": "2"}, "2097-01-01 00:00",
         "2104-02-29 00:00"),
        ({"CronMinute": "0", "CronHour": "9", "CronDayOfWeek": "7"}, MONDAY, "2024-01-07 09:00"),
        ({"CronMinute": "0", "CronHour": "9", "CronDayOfWeek": "0"}, MONDAY, "2024-01-07 09:00"),
        ({"CronMinute": "0", "CronHour": "9", "CronDayOfWeek": "3", "CronDayOfMonth": "2"}, MONDAY,
         "2024-01-02 09:00"),
        ({"CronMinute": "0", "CronHour": "9", "CronDayOfMonth": "*/10", "CronDayOfWeek": "1"}, MONDAY,
         "2024-03-11 09:00"),
    ],
)  # fmt: skip
def test_next_run(fields: dict[str, str], after: str, expected: str) -> None:
    """
    The next time is the first one after now that the fields name; of two kinds of days that are named, either does.
    """
    assert seconds(expected) == next_run(crontab(fields), seconds(after), UTC)


def test_a_day_that_never_comes() -> None:
    """Days that no year has name no time."""
    assert next_run(crontab({"CronDayOfMonth": "31", "CronMonth": "2"}), 0, UTC) is None


def test_summer_time() -> None:
    """A time that the clock leaves out comes an hour later, and the one after it the next day."""
    zone = ZoneInfo("Europe/Berlin")
    schedule = crontab({"CronMinute": "30", "CronHour": "2"})
    first = next_run(schedule, seconds("2024-03-30 12:00", zone), zone)
    assert first is not None
    assert seconds("2024-03-31 03:30", zone) == first
    assert seconds("2024-04-01 02:30", zone) == next_run(schedule, first, zone)


@pytest.mark.parametrize(
    ("name", "text"),
    [("CronMinute", "60"), ("CronHour", "mon"), ("CronDayOfMonth", "0"), ("CronMinute", "5-1"), ("CronMinute", "*/0"),
     ("CronMonth", ""), ("CronDayOfWeek", "8"), ("CronMinute", "1,,2")],
)  # fmt: skip
def test_nonsense(name: str, text: str) -> None:
    """
    What is no field of a crontab, or names what the calendar does not have, is told with the part that is wrong.
    """
    with pytest.raises(ValueError, match=r"no numbers from|is neither"):
        tuple(numbers_of(name, text))
    assert name in FIELDS


def test_winter_time() -> None:
    """In the hour that comes twice, what runs every hour runs twice, and a time of the day once."""
    zone = ZoneInfo("Europe/Berlin")
    one = int(datetime(2024, 10, 27, 0, 30, tzinfo=UTC).timestamp())
    assert one + 1800 == next_run(crontab({"CronMinute": "*/30"}), one, zone)
    assert one + 3600 == next_run(crontab({"CronMinute": "30"}), one, zone)
    once = crontab({"CronMinute": "30", "CronHour": "2"})
    assert seconds("2024-10-28 02:30", zone) == next_run(once, one, zone)
