"""Jobs that their owner suspends, on machines that have a policy of their own."""

import msgspec
import pytest

from kettle_services.startd.domain.claims import activation
from kettle_services.startd.domain.state.changes import AttemptContinued, Change, OwnerOrderChanged
from kettle_services.startd.domain.state.claim import Now
from kettle_services.startd.domain.state.slot_transitions import retire, step
from kettle_wire.commands.startd import Suspension
from kettle_wire.jobs import JobId

from .hosts import KEY, NOW, machine
from .test_slot_transitions import CLEANING, DRAIN, SUSPENDED, Says, after, one

STILL = (OwnerOrderChanged("c1", still=True, number=1, at=4960.0),)


def order(number: int, *, suspended: bool) -> Suspension:
    """What the owner of the job wants of it."""
    return Suspension(key=KEY, job=JobId(1, 0), attempt=1, suspended=suspended, number=number)


def test_the_latest_order_of_a_jobs_owner_counts() -> None:
    """One that comes late, or twice, changes nothing; nor does one for a job that is being ended."""
    host = one()
    assert ("Claimed", "Suspended") == after(host, activation.suspend(host, order(3, suspended=True), NOW))
    assert [] == activation.suspend(host, order(2, suspended=False), NOW)
    assert [] == activation.suspend(host, order(3, suspended=False), NOW)
    assert ("Claimed", "Busy") == after(host, activation.suspend(host, order(4, suspended=False), NOW))
    ending = one(*CLEANING)
    assert [] == activation.suspend(ending, order(1, suspended=True), NOW)
    stranger = msgspec.structs.replace(order(9, suspended=True), attempt=2)
    assert [] == activation.suspend(host, stranger, NOW)


@pytest.mark.parametrize(
    ("came", "true", "leads", "stands_still"),
    [
        (STILL, ("CONTINUE",), ("Claimed", "Suspended"), True),
        (STILL, ("WANT_SUSPEND", "SUSPEND"), ("Claimed", "Suspended"), True),
        ((*SUSPENDED, *STILL), ("CONTINUE",), ("Claimed", "Suspended"), True),
        ((*SUSPENDED, *STILL, AttemptContinued("c1", 970.0, 4970.0)), (), ("Claimed", "Suspended"), True),
        ((*SUSPENDED, *STILL, OwnerOrderChanged("c1", still=False, number=2, at=4970.0)), (), ("Claimed", "Suspended"), True),
        ((*SUSPENDED, *STILL, OwnerOrderChanged("c1", still=False, number=2, at=4970.0)), ("CONTINUE",), ("Claimed", "Busy"), False),
        (STILL, ("PREEMPT",), ("Preempting", "Vacating"), False),
        (STILL, ("PREEMPT", "WANT_SUSPEND"), ("Preempting", "Vacating"), False),
    ],
)  # fmt: skip
def test_machine_and_owner_suspend_each_for_itself(
    came: tuple[Change, ...], true: tuple[str, ...], leads: tuple[str, str], stands_still: bool
) -> None:
    """
    The job continues when neither suspends it; and a machine can end a job that its owner has suspended.
    """
    host = one(*came)

    assert leads == after(host, step(host.claims["c1"], Says(*true), NOW))
    attempt = host.claims["c1"].attempt
    assert attempt is not None
    assert stands_still == attempt.stands_still


def test_the_retirement_of_a_job_that_its_owner_suspended_comes_to_an_end() -> None:
    """It uses up its time while suspended: otherwise nobody else could ever have the machine."""
    host = one(*STILL)
    asked = Says(MaxJobRetirementTime=150.0)
    assert ("Claimed", "Retiring") == after(host, retire(host.claims["c1"], DRAIN, asked, NOW))
    attempt = host.claims["c1"].attempt
    assert attempt is not None
    assert attempt.stands_still
    assert [] == step(host.claims["c1"], asked, NOW)

    later = Now(NOW.clock + 100.0, NOW.time + 100.0)
    assert ("Preempting", "Vacating") == after(host, step(host.claims["c1"], asked, later))


def test_a_restarted_startd_knows_of_the_order() -> None:
    """What the journal begins with says all that the changes said."""
    host = one(*STILL)
    again = machine()
    for change in host.snapshot():
        again.apply(change)

    assert host.claims["c1"] == again.claims["c1"]
