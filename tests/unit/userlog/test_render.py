from datetime import UTC

import pytest

from kettle.userlog import (
    CpuTimes,
    Evicted,
    Held,
    ImageSize,
    LogEvent,
    Resource,
    Submitted,
    Terminated,
    UserLogFormatError,
    parse,
    render,
)
from kettle_wire.attempts import ExitRecord
from kettle_wire.jobs import JobId

JOB = JobId(5, 0)


def lines(event: LogEvent) -> list[str]:
    return render(event, UTC).split("\n")


def test_table_layout() -> None:
    """
    Numbers end where the words of the heading end; whole numbers leave room for the decimals of their column.
    """
    table = [
        Resource(label="Cpus", usage="0.25", request="1", allocated="1"),
        Resource(label="Disk (KB)", usage="15", request="7", allocated="17605109"),
        Resource(label="TimeSlotBusy (s)", usage="13"),
    ]
    event = Terminated(job=JOB, at=0, exit=ExitRecord(code=0), resources=table)
    assert [
        "\tPartitionable Resources :    Usage  Request Allocated ",
        "\t   Cpus                 :     0.25        1         1 ",
        "\t   Disk (KB)            :    15           7  17605109 ",
        "\t   TimeSlotBusy (s)     :    13                       ",
        "...",
        "",
    ] == lines(event)[-6:]
    assert [event] == parse(render(event, UTC), UTC)


def test_wide_numbers_and_names() -> None:
    """Columns grow with what is in them, and are still read."""
    table = [
        Resource(label="Disk (KB)", usage="123456789012", request="1", allocated="99999999999"),
        Resource(label="AVeryLongDeviceName", usage="", request="2", allocated="2"),
    ]
    event = Terminated(job=JOB, at=0, exit=ExitRecord(code=0), resources=table)
    assert [event] == parse(render(event, UTC), UTC)


def test_a_reason_is_one_line() -> None:
    """Line breaks in a reason become blanks, because readers take the second line for the codes."""
    text = render(Held(job=JOB, at=0, reason="first\nsecond\r\nthird\n", code=6, subcode=2), UTC)
    assert "\tfirst second third\n\tCode 6 Subcode 2\n...\n" in text


def test_nothing_forges_the_end_of_an_event() -> None:
    """A reason that holds the terminating line does not end the event early."""
    forged = Held(job=JOB, at=0, reason="x\n...\n005 (005.000.000) 1970-01-01 00:00:00 Job terminated.")
    assert 1 == len(parse(render(forged, UTC), UTC))


def test_an_eviction_with_a_table_has_a_reason() -> None:
    """Readers lose the first row of a table that no reason precedes."""
    text = render(Evicted(job=JOB, at=0, resources=[Resource(label="Cpus", request="1")]), UTC)
    assert "\tReason: unspecified\n\tPartitionable" in text


def test_days() -> None:
    """Times of more than a day show the days, ids are at least three digits wide."""
    event = Terminated(job=JobId(1234, 7), at=0, exit=ExitRecord(signal=9), run_remote=CpuTimes(90061, 0))
    assert "005 (1234.007.000) 1970-01-01 00:00:00 Job terminated." == lines(event)[0]
    assert "\t\tUsr 1 01:01:01, Sys 0 00:00:00  -  Run Remote Usage" == lines(event)[3]


def test_partial_image_size() -> None:
    """Measures that nobody made are left out."""
    event = ImageSize(job=JOB, at=0, image_kib=5, resident_kib=4)
    assert ["\t4  -  ResidentSetSize of job (KB)", "..."] == lines(event)[1:3]


def test_an_unfinished_event_is_not_there_yet() -> None:
    """An event without its terminating line is left for later."""
    whole = render(Submitted(job=JOB, at=0, host="<a>"), UTC)
    assert 1 == len(parse(whole + whole[:-4], UTC))


def test_carriage_returns() -> None:
    """Files from other systems are read."""
    text = render(Held(job=JOB, at=0, reason="r", code=1), UTC).replace("\n", "\r\n")
    assert [Held(job=JOB, at=0, reason="r", code=1)] == parse(text, UTC)


@pytest.mark.parametrize(
    "text",
    [
        "nonsense\n...\n",
        "...\n",
        "005 (1.0.0) 1970-01-01 00:00:00 Job terminated.\n...\n",
        "006 (1.0.0) 1970-01-01 00:00:00 Image size of job updated: many\n...\n",
    ],
)
def test_not_a_log(text: str) -> None:
    """What is no event is refused with the line at which it begins."""
    good = render(Submitted(job=JOB, at=0, host="<a>"), UTC)
    with pytest.raises(UserLogFormatError, match="line 3"):
        parse(good + text, UTC)
