"""What is told of machines that refused claims."""

import time

import pytest

from kettle_services.schedd.claims.refusals import Refusals


def test_the_last_refusal_is_told_and_an_old_one_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Twelve seconds later it explains something, eleven minutes later it does not; other jobs are not concerned.
    """
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    told = Refusals()
    told.add_refusal(("alice", 1), "slot1@m", "START is false")
    told.add_refusal(("alice", 1), "slot1@n", "")
    now += 12
    assert "slot1@m refused jobs like it 12 s ago: START is false" == told.last_refusal(("alice", 1))
    assert "" == told.last_refusal(("alice", 2))
    now += 660
    assert "" == told.last_refusal(("alice", 1))


def test_no_more_are_kept_than_somebody_may_ask_for() -> None:
    """Of 1,001 the first is forgotten."""
    told = Refusals()
    for autocluster in range(1_001):
        told.add_refusal(("alice", autocluster), "slot1@m", "no")
    assert "" == told.last_refusal(("alice", 0))
    assert told.last_refusal(("alice", 1_000)).endswith(": no")
