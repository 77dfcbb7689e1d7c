"""
What the collector saw of a machine, on the stream `machine/<name>`, and of a daemon that other pools have registered here, on the stream
`registered/<key of its ad>`.
"""

from kettle_wire.ads.types import Ad
from kettle_wire.events.base import Event


class MachineJoined(Event, frozen=True, tag="machine.joined/1"):
    """The first ad of a startd that was not known, or had left."""

    machine: str
    cpus: int
    memory: int
    """MiB."""


class MachineLeft(Event, frozen=True, tag="machine.left/1"):
    """The ads of a startd were withdrawn (`drained`) or ran out (`expired`)."""

    machine: str
    reason: str
    slots: list[Ad] = []
    """Of an absent machine, one that is expected to come back: the last ads of its slots."""


class AdKept(Event, frozen=True, tag="ad.kept/1"):
    """A registry does not hear of a daemon of another pool any more, and keeps its ad for a while."""

    key: str
    """Under which the ad stood in the bucket of ads."""
    ad: Ad
    """As it was last; `LastHeardFrom` says when that was."""


class AdHeard(Event, frozen=True, tag="ad.heard/1"):
    """It is heard again."""

    key: str


CollectorEvent = MachineJoined | MachineLeft | AdKept | AdHeard
