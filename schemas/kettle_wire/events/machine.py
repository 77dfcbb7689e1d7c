"""What the collector saw of a machine, on the stream `machine/<name>`."""

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
