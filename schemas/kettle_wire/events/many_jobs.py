"""One event for the same change of many jobs of one cluster; its stream is `jobs/<n>`."""

import msgspec

from kettle_wire.events.base import Event


class Procs(msgspec.Struct, frozen=True, array_like=True):
    """Jobs `first` to `first + count - 1` of a cluster, in whose streams the event has the same version."""

    first: int
    count: int
    version: int


class JobsChanged(Event, frozen=True, tag="jobs.changed/1"):
    """
    One event of each of these jobs, which says the same of all: `kettle_wire.event_expansion` makes it of this.

    Who reads the log reads those single events, each at the position of this one, and with the number in its own stream
    that it would have if it had been recorded there.
    """

    cluster: int
    type: str
    """The tag `noun.verb/N` of the single event, as it stood in the log."""
    data: msgspec.Raw
    """
    The single event, as any other is recorded: when its type is superseded, it is lifted when it is read.
    """
    jobs: list[Procs]
    """In their order; none twice."""
