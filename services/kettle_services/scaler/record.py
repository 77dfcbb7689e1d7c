"""A scaler's record: its shard together with what is folded from it."""

from typing import Final

from kettle.eventsourcing.state_record import StateRecord
from kettle_services.scaler.domain.state import ScalerState

SHARD: Final = "scaler"
Record = StateRecord[ScalerState]
