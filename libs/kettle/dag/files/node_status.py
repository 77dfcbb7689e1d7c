"""
The state of the workflow and of each node, as ads in the new syntax (command NODE_STATUS_FILE).

Pure.  `condor_q`-like programs of Pegasus and LSST read these files while the workflow runs; the comments stand where
HTCondor writes them, because readers by hand and by regular expressions exist.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import tzinfo

import msgspec

from kettle.classad.printing import quoted_string as quote
from kettle.dag.files.counts import Counts, Jobs
from kettle.dag.files.times import at_length
from kettle_wire.codes import NodeStatus


class NodeLine(msgspec.Struct, frozen=True):
    """What the file says of one node."""

    name: str
    status: NodeStatus
    details: str = ""
    retries: int = 0
    queued: int = 0
    """Jobs of it in the queue."""
    held: int = 0
    """Jobs of it on hold."""


def ads(
    at: float,
    dag_files: Sequence[str],
    status: NodeStatus,
    note: str,
    counts: Counts,
    jobs: Jobs,
    nodes: Iterable[NodeLine],
    next_update: float,
    zone: tzinfo | None = None,
) -> Iterator[str]:
    """
    The lines of the file, written at `at`.

    `status` and `note`: how the workflow is as a whole ("success", "failed", "aborted", …).
    `next_update`: seconds since the epoch; 0 if the file stays as it is.
    """
    yield "["
    yield '  Type = "DagStatus";'
    yield "  DagFiles = {"
    yield ",\n".join(f"    {quote(name)}" for name in dag_files)
    yield "  };"
    yield f"  Timestamp = {int(at)}; /* {quote(at_length(at, zone))} */"
    yield f"  DagStatus = {status.value}; /* {quote(f'{_name(status)} ({note})')} */"
    yield f"  NodesTotal = {counts.total};"
    yield f"  NodesDone = {counts.done};"
    yield f"  NodesPre = {counts.pre};"
    yield f"  NodesQueued = {counts.queued};"
    yield f"  NodesPost = {counts.post};"
    yield f"  NodesReady = {counts.ready};"
    yield f"  NodesUnready = {counts.unready};"
    yield f"  NodesFutile = {counts.futile};"
    yield f"  NodesFailed = {counts.failed};"
    yield f"  JobProcsHeld = {jobs.held};"
    yield f"  JobProcsIdle = {jobs.idle + jobs.held}; /* includes held */"
    yield f"  JobProcsRunning = {jobs.running};"
    yield "]"
    for node in nodes:
        yield "["
        yield '  Type = "NodeStatus";'
        yield f"  Node = {quote(node.name)};"
        yield f"  NodeStatus = {node.status.value}; /* {quote(_name(node.status))} */"
        yield f"  StatusDetails = {quote(node.details)};"
        yield f"  RetryCount = {node.retries};"
        yield f"  JobProcsQueued = {node.queued};"
        yield f"  JobProcsHeld = {node.held};"
        yield "]"
    yield "["
    yield '  Type = "StatusEnd";'
    yield f"  EndTime = {int(at)}; /* {quote(at_length(at, zone))} */"
    shown = at_length(next_update, zone) if next_update else "none"
    yield f"  NextUpdate = {int(next_update)}; /* {quote(shown)} */"
    yield "]"


def _name(status: NodeStatus) -> str:
    return f"STATUS_{status.name}"
