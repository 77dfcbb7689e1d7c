"""
Everything that is ever recorded, and how a recorded event is read back.

A published type is only superseded, never changed: `upcast` turns an old one into its successor when it is decoded.
"""

from kettle.wire.events.base import Event, Superseded
from kettle.wire.events.claim import ClaimEnded, ClaimEvent, ClaimGranted
from kettle.wire.events.cluster import ClusterSubmitted
from kettle.wire.events.codec import (
    CODEC,
    NotWrittenError,
    UnknownEventError,
    decode,
    encode,
    recorded_tag,
    tag_of,
)
from kettle.wire.events.cycle import Clause, CycleNegotiated, Match, Rejection
from kettle.wire.events.job import (
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDeferred,
    JobDisconnected,
    JobEvent,
    JobHeld,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobSuspended,
    JobVacated,
    Usage,
)
from kettle.wire.events.machine import MachineJoined, MachineLeft

__all__ = [
    "CODEC",
    "ClaimEnded",
    "ClaimEvent",
    "ClaimGranted",
    "Clause",
    "ClusterSubmitted",
    "CycleNegotiated",
    "Event",
    "JobAssigned",
    "JobCheckpointed",
    "JobCompleted",
    "JobContinued",
    "JobDeferred",
    "JobDisconnected",
    "JobEvent",
    "JobHeld",
    "JobReconnected",
    "JobReleased",
    "JobRemoved",
    "JobStarted",
    "JobSuspended",
    "JobVacated",
    "MachineJoined",
    "MachineLeft",
    "Match",
    "NotWrittenError",
    "Rejection",
    "Superseded",
    "UnknownEventError",
    "Usage",
    "decode",
    "encode",
    "recorded_tag",
    "tag_of",
]
