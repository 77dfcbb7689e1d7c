"""
What control messages are about, where these take time: a service that admits jobs, and a negotiator that asks host after host.

Before a job is admitted, the service has a host tell its cores, and then its memory, and asks the next one if these do not do.
The negotiator asks each host whether the job fits now, sends the job to the first that says so, and waits for its acknowledgement.
"""

from collections.abc import Sequence
from enum import Enum, auto

from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.wrench.pending_jobs import Shape


class Step(Enum):
    """What happens next between a negotiator and a host, about one job."""

    ASK = auto()
    """The question is sent."""
    ANSWER = auto()
    """It has come to the host, which answers."""
    PASS = auto()
    """The answer was no: the next host."""
    SEND = auto()
    """The answer was yes: the job is sent, after the delay for each job that is placed."""
    ACKNOWLEDGE = auto()
    """It has come to the host, where it starts."""


class Talk:
    """How far a negotiator is with one job."""

    __slots__ = ("host", "job", "shape", "step")

    def __init__(self, job: int, shape: Shape) -> None:
        self.job, self.shape = job, shape
        self.host = 0
        self.step = Step.ASK


def admission(take: Sequence[int], hosts: Sequence[Host], shape: Shape) -> int:
    """How long it takes to find out that one of the hosts could hold a job, in microseconds."""
    total = 0
    for way, host in zip(take, hosts, strict=True):
        total += 2 * way
        if host.cores < shape.cores:
            continue
        total += 2 * way
        if host.memory >= shape.more:
            break
    return total
