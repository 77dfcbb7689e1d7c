"""What of a shard of workflows is read when its owner starts: which of them are not over."""

from kettle_wire.events import Event, WorkflowEnded


def row_of(event: Event) -> bytes | None:
    """The row of a workflow after one of its events; None: it is over and has none."""
    return None if isinstance(event, WorkflowEnded) else b""
