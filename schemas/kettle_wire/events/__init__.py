"""
Everything that is ever recorded, and how a recorded event is read back.

A published type is only superseded, never changed: `upcast` turns an old one into its successor when it is decoded.
"""

from kettle_wire.attempts import Ending, ExitRecord, Transfer, Usage
from kettle_wire.events.base import Event, Superseded
from kettle_wire.events.claim import ClaimEnded, ClaimEvent, ClaimGranted
from kettle_wire.events.cluster import ClusterSubmitted, FactorySubmitted
from kettle_wire.events.codec import (
    CODEC,
    NotWrittenError,
    UnknownEventError,
    decode,
    encode,
    recorded_tag,
    tag_of,
)
from kettle_wire.events.cycle import Clause, CycleNegotiated, Match, Rejection, Withheld
from kettle_wire.events.factory import FactoryChanged, FactoryClosed, FactoryEvent, FactoryMaterialized
from kettle_wire.events.job import (
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDeferred,
    JobDisconnected,
    JobEdited,
    JobEvent,
    JobHeld,
    JobKept,
    JobLeft,
    JobOrdered,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobStarted,
    JobSuspended,
    JobTold,
    JobVacated,
)
from kettle_wire.events.machine import MachineJoined, MachineLeft
from kettle_wire.events.many_jobs import JobsChanged, Procs
from kettle_wire.events.principal import (
    PrincipalCharged,
    PrincipalDeleted,
    PrincipalEvent,
    PrincipalReset,
    PrincipalSet,
)

__all__ = [
    "CODEC",
    "ClaimEnded",
    "ClaimEvent",
    "ClaimGranted",
    "Clause",
    "ClusterSubmitted",
    "CycleNegotiated",
    "Ending",
    "Event",
    "ExitRecord",
    "FactoryChanged",
    "FactoryClosed",
    "FactoryEvent",
    "FactoryMaterialized",
    "FactorySubmitted",
    "JobAssigned",
    "JobCheckpointed",
    "JobCompleted",
    "JobContinued",
    "JobDeferred",
    "JobDisconnected",
    "JobEdited",
    "JobEvent",
    "JobHeld",
    "JobKept",
    "JobLeft",
    "JobOrdered",
    "JobReconnected",
    "JobReleased",
    "JobRemoved",
    "JobStarted",
    "JobSuspended",
    "JobTold",
    "JobVacated",
    "JobsChanged",
    "MachineJoined",
    "MachineLeft",
    "Match",
    "NotWrittenError",
    "PrincipalCharged",
    "PrincipalDeleted",
    "PrincipalEvent",
    "PrincipalReset",
    "PrincipalSet",
    "Procs",
    "Rejection",
    "Superseded",
    "Transfer",
    "UnknownEventError",
    "Usage",
    "Withheld",
    "decode",
    "encode",
    "recorded_tag",
    "tag_of",
]
