"""From where a node has its result that was not run, as a sentence.  Pure."""

from datetime import UTC, datetime

from kettle_wire.events.workflow import NodeReuse


def reused(reuse: NodeReuse) -> str:
    """A clause: whose result it is, and when that was made."""
    when = datetime.fromtimestamp(reuse.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f"it is the same as node {reuse.name} of workflow {reuse.workflow}, which ran as job {reuse.cluster}.0 ({when}), "
        "and what that left is still there"
    )
