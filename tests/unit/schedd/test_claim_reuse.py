"""Which job follows on a claim: the next in order, unless it would leave idle what was carved for another."""

from typing import Any

import pytest

from kettle.classad import ClassAd
from kettle_services.schedd.domain.claims.claim import LeaseTerms
from kettle_services.schedd.domain.claims.reuse import ClaimReuse, Fit, fit
from kettle_services.schedd.domain.jobs.commands import Assign
from kettle_services.schedd.domain.jobs.decide import decide
from kettle_services.schedd.domain.queue.fold import Queue, job_stream
from kettle_wire.ads import Ad, Expr
from kettle_wire.events import ClaimGranted, ClusterSubmitted, Event
from kettle_wire.jobs import JobId

SLOT: Ad = {
    "DynamicSlot": True,
    "Cpus": 4, "TotalSlotCpus": 4,
    "Memory": 8192, "TotalSlotMemory": 8192,
    "Disk": 4096, "TotalSlotDisk": 4096,
    "GPUs": 1, "TotalSlotGPUs": 1,
    "Requirements": True,
}  # fmt: skip
FULL: Ad = {
    "RequestCpus": 4,
    "RequestMemory": 8192,
    "RequestDisk": 1,
    "RequestGPUs": 1,
    "Requirements": Expr("TARGET.Cpus >= RequestCpus && TARGET.Memory >= RequestMemory"),
}


@pytest.mark.parametrize(
    ("changes", "slot", "found"),
    [
        ({}, {}, Fit.GOOD),
        ({"RequestCpus": 5}, {}, Fit.NONE),
        ({"RequestCpus": 3}, {}, Fit.LARGE),
        ({"RequestCpus": 3}, {"DynamicSlot": False}, Fit.GOOD),
        ({"RequestCpus": Expr("TARGET.Cpus")}, {}, Fit.GOOD),
        ({"RequestGPUs": 0}, {}, Fit.LARGE),
        ({"RequestGPUs": None}, {}, Fit.LARGE),
        ({"RequestMemory": 4096}, {}, Fit.GOOD),
        ({"RequestMemory": 4095}, {}, Fit.LARGE),
        ({"RequestMemory": 16}, {"TotalSlotMemory": 1040}, Fit.GOOD),
        ({"RequestMemory": 16}, {"TotalSlotMemory": 1041}, Fit.LARGE),
        ({"RequestDisk": 0}, {}, Fit.GOOD),
        ({"RequestCpus": Expr("error")}, {"Requirements": False}, Fit.NONE),
    ],
)
def test_what_a_slot_is_for_a_job(changes: dict[str, Any], slot: Ad, found: Fit) -> None:
    """
    All cores and devices of a dynamic slot have to be used; of 8192 MiB at least 4096, or all but 1024; a static slot is as it is.
    """
    job = {name: value for name, value in {**FULL, **changes}.items() if value is not None}

    assert found == fit(ClassAd.from_wire(job), ClassAd.from_wire({**SLOT, **slot}), 0.0)


class Side:
    """A queue of alice's, with one claim that a job of four cores has left."""

    def __init__(
        self, *, first: int, then: list[int], requirements: str = "TARGET.Cpus >= RequestCpus"
    ) -> None:
        self.queue = Queue("ap")
        for number, cpus in enumerate([first, *then], 1):
            ad: Ad = {"Cmd": "/bin/true", "RequestCpus": cpus, "Requirements": Expr(requirements)}
            self.apply(f"cluster/{number}", ClusterSubmitted(number, "alice", ad, [], [[]]))
        granted = ClaimGranted(
            claim="c",
            startd="m",
            slot="slot1_1@m",
            slot_ad={"DynamicSlot": True, "Cpus": first, "TotalSlotCpus": first, "Requirements": True},
            submitter="alice",
            autocluster=self.queue.autocluster(JobId(1, 0)),
            lease=10.0,
        )
        self.apply("claim/c", granted)
        job = self.queue.jobs[JobId(1, 0)].job
        self.apply(job_stream(JobId(1, 0)), *decide(job, Assign("c", "slot1_1@m", "m")))
        self.succession = ClaimReuse(self.queue, suits=self.suits, clock=lambda: 0.0)

    def suits(self, ad: Ad, granted: ClaimGranted) -> bool:
        return LeaseTerms(10.0, 10.0, 10.0).suits(ad, granted.lease)

    def apply(self, stream: str, *events: Event) -> None:
        for event in events:
            self.queue.apply(stream, event, 1_000_000)


def test_the_next_job_that_fills_the_slot_gets_it() -> None:
    """8 cores do not match 4 and are passed over; the 4 after them do."""
    assert JobId(3, 0) == Side(first=4, then=[8, 4]).succession.next("c")


def test_a_smaller_job_whose_turn_it_is_ends_the_claim() -> None:
    """
    One core is next, four come later: taking those would go before its turn, taking it would leave three cores idle.
    """
    side = Side(first=4, then=[1, 4])

    assert "part of the slot would be idle with job 2.0, which is next" == side.succession.next("c")


def test_a_claim_for_which_no_job_is_left_ends() -> None:
    """Eight cores never fit."""
    assert "no more jobs for the claim" == Side(first=4, then=[8]).succession.next("c")
