"""An entrypoint's record: its shard together with what is folded from it."""

from kettle.eventsourcing.state_record import StateRecord
from kettle_services.ce.domain.state import CeState

Record = StateRecord[CeState]


def shard_of(name: str) -> str:
    """The shard of the entrypoint of a schedd."""
    return f"ce.{name}"
