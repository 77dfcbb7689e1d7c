"""Why an attempt ends without a result."""

import errno

import pytest

from kettle.execution.job_environment.job_ad import JobAd
from kettle_services.starter.reports.endings import (
    after_collecting,
    after_mishap,
    after_preparing,
    after_waiting,
    limits,
)
from kettle_wire.ads import Ad


@pytest.mark.parametrize("seconds", [float("inf"), float("-inf"), float("nan")])
def test_a_duration_that_is_none_is_no_limit(seconds: float) -> None:
    """A starter waits for moments, and these are none."""
    assert [] == limits(JobAd({"AllowedExecuteDuration": seconds}), 1.0, 1.0)


def test_a_job_runs_from_when_its_program_was_started() -> None:
    """What went before, a large image perhaps, counts for the job's duration alone."""
    found = limits(JobAd({"AllowedExecuteDuration": 60, "AllowedJobDuration": 90}), 5.0, 50.0)

    assert [(95.0, 46), (110.0, 47)] == [(at, ending.code) for at, ending in found]


@pytest.mark.parametrize(
    ("ad", "expected"),
    [
        ({"DeferralTime": 100}, None),
        ({"DeferralTime": 98, "DeferralWindow": 2}, None),
        ({"DeferralTime": 98, "DeferralWindow": 1}, (True, 20)),
        ({"DeferralTime": 98, "DeferralWindow": 1, "CronMinute": "*"}, (False, 1005)),
        ({"DeferralTime": "noon"}, (True, 20)),
    ],
)
def test_a_job_that_is_ready_too_late(ad: Ad, expected: tuple[bool, int] | None) -> None:
    """Beyond its window a job is held, and one of the calendar waits for its next time."""
    ending = after_waiting(JobAd(ad), 100.0)

    assert expected == (None if ending is None else (ending.holds, ending.code))


def test_every_reason_can_be_said_on_the_wire() -> None:
    """Names on disk may be any bytes, and text may be long."""
    name = "\udcffx"
    found = [
        after_preparing(OSError(errno.ENOSPC, "No space left", name)),
        after_mishap(ValueError(name * 10_000)),
        after_collecting(PermissionError(errno.EACCES, "Permission denied", name)),
    ]

    for ending in found:
        assert len(ending.reason.encode()) < 10_000
        assert "\\udcffx" in ending.reason


@pytest.mark.parametrize(
    ("number", "hold", "code"),
    [(errno.ENOSPC, False, 1024), (errno.ENAMETOOLONG, True, 13), (errno.ENOTDIR, True, 13)],
)
def test_names_of_inputs_that_no_machine_takes_hold_the_job(number: int, hold: bool, code: int) -> None:
    """Everything else about a sandbox is the machine's fault."""
    ending = after_preparing(OSError(number, "why", "name"))

    assert (hold, code) == (ending.holds, ending.code)
