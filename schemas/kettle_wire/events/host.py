"""
What happens to machines of static pools, on the stream `host/<machine>`: they are put to sleep when they are idle, and woken when a
job waits that one of them could run.

`until` is the deadline of the state that a machine comes into, in seconds since the epoch.  What is done about a machine is recorded
before it is done, and each attempt is made once: what became of it is seen at the machine.
"""

from typing import Annotated

import msgspec

from kettle_wire.ads.types import Ad
from kettle_wire.events.base import Event
from kettle_wire.events.lease import Demand
from kettle_wire.leases import Words
from kettle_wire.worker_pools import Hibernation, MachineName, Name

Slots = Annotated[list[Ad], msgspec.Meta(max_length=1024)]


class HostHibernating(Event, frozen=True, kw_only=True, tag="host.hibernating/1"):
    """
    It is to sleep: it takes no more jobs, if none is on it, and then its provider is asked once to put it to sleep.
    """

    machine: MachineName
    pool: Name
    offer: Name
    level: Hibernation
    attempt: int
    """Counts all attempts to have this machine asleep or awake."""
    until: float
    """If it still answers then, it stays awake."""
    why: Words
    slots: Slots
    """The ads of its slots, as they were while it took jobs: by these it is seen while it sleeps."""


class HostFenced(Event, frozen=True, kw_only=True, tag="host.fenced/1"):
    """It takes no more jobs and has none.  Its provider is about to be asked to put it to sleep, once."""

    attempt: int


class HostAsleep(Event, frozen=True, kw_only=True, tag="host.asleep/1"):
    """It does not answer any more."""

    machine: MachineName
    pool: Name
    offer: Name
    words: Words = ""
    """Why, if it was not us who put it to sleep."""


class HostWaking(Event, frozen=True, kw_only=True, tag="host.waking/1"):
    """A job waits that it could run: its provider is asked once to wake it."""

    attempt: int
    until: float
    """If it does not answer by then, it did not wake."""
    demand: list[Demand] = []
    """Because of whom."""
    why: Words = ""


class HostNotWoken(Event, frozen=True, kw_only=True, tag="host.not_woken/1"):
    """
    It did not wake in time, or could not be woken; it counts as asleep, and is not tried before `again`.
    """

    words: Words
    failures: int
    """In a row."""
    again: float


class HostBroken(Event, frozen=True, kw_only=True, tag="host.broken/1"):
    """
    It did not wake, again and again: nobody counts on it until it is heard of, or somebody resumes its pool.
    """

    words: Words
    failures: int


class HostAwake(Event, frozen=True, kw_only=True, tag="host.awake/1"):
    """It answers, and takes jobs."""

    words: Words = ""
    """Why it is awake, if it was not woken by us."""
    again: float = 0.0
    """It is not put to sleep before."""


class HostMended(Event, frozen=True, kw_only=True, tag="host.mended/1"):
    """Somebody says that a broken machine can be woken again."""

    by: str


class HostForgotten(Event, frozen=True, kw_only=True, tag="host.forgotten/1"):
    """Its pool has it no more.  Nothing is done about it from now on."""

    why: Words


HostEvent = (
    HostHibernating
    | HostFenced
    | HostAsleep
    | HostWaking
    | HostNotWoken
    | HostBroken
    | HostAwake
    | HostMended
    | HostForgotten
)
