"""What a workflow would be, without a job of it being made."""

import msgspec

from kettle_wire.prominence.faults import Fault


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """Counts, the shape of the graph, and how long it takes at least."""

    name: str
    jobs: int
    """Of the document."""
    nodes: int
    """Jobs that are submitted: with all instances of factories."""
    height: int
    """Nodes on the longest way through the graph."""
    width: int
    """The most nodes on one level: behind equally many others on the longest way to them."""
    critical_path: list[str]
    """Names of the jobs, one behind the other, that take longest."""
    seconds: float
    """How long these take, by what is known of them."""
    is_limit: bool
    """What is known are limits (walltime); else they are times that were recorded."""
    warnings: list[Fault] = []
