"""Whether a service that ended is started again, and when; and whether one that is silent hangs."""

from typing import Final

import msgspec

from kettle.retry.backoff import Backoff

EXIT_DO_NOT_RESTART: Final = 99
"""HTCondor's code of a daemon that asks not to be started again."""

EXIT_CANNOT_LOG: Final = 44
"""HTCondor's code of a daemon that cannot write its log."""

EXIT_SETTINGS: Final = 78
"""The service got settings that it cannot use; with the same settings it ends the same way."""

_REASONS: Final = {
    EXIT_DO_NOT_RESTART: "asked not to be started again",
    EXIT_CANNOT_LOG: "cannot write its log",
    EXIT_SETTINGS: "cannot use its settings",
}


HTCONDOR: Final = Backoff(constant=9.0, first=1.0, longest=3600.0, spread=0.0)
"""
HTCondor's rule of how long to wait before start n+1 of a row of failures: `9 + 2^n` seconds, an hour at most.
"""

RECOVER_S: Final = 300.0
"""Seconds of running after which the row is over."""


class Again(msgspec.Struct, frozen=True):
    """Start it again in `delay` seconds; `failures` is then the length of the row."""

    delay: float
    failures: int


class Leave(msgspec.Struct, frozen=True):
    """Do not start it again."""

    reason: str


def after_end(
    backoff: Backoff, *, recover: float = RECOVER_S, failures: int, ran_s: float, status: int
) -> Again | Leave:
    """
    What follows the end of a service that nobody had asked to end.

    `recover`: seconds of running after which a row of failures is over; `failures` counts the ends before this one in a row; `status` is the exit status, negative for a signal.
    """
    if status in _REASONS:
        return Leave(_REASONS[status])
    row = 0 if ran_s >= recover else failures
    return Again(backoff.length(row), row + 1)


def silent(*, now: float, last_sign: float, timeout: float, looked: float, period: float) -> bool:
    """
    Whether a service hangs: it has sent no heartbeat for `timeout` seconds, while the master was running to receive
    one.

    `looked` is the time of the last check; if that is much longer ago than `period`, the master was stopped, and
    messages from meanwhile still have to be read.
    """
    return now - last_sign > timeout and now - looked <= 3 * period
