"""An event of each type that is recorded of jobs, claims, machines and principals, with its stream."""

from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.events import (
    ClaimEnded,
    ClaimGranted,
    ClusterSubmitted,
    CycleNegotiated,
    FactoryChanged,
    FactoryClosed,
    FactoryMaterialized,
    FactorySubmitted,
    JobAssigned,
    JobCheckpointed,
    JobCompleted,
    JobContinued,
    JobDeferred,
    JobDisconnected,
    JobEdited,
    JobHeld,
    JobKept,
    JobLeft,
    JobNodeEnded,
    JobNodeStarted,
    JobOrdered,
    JobReconnected,
    JobReleased,
    JobRemoved,
    JobServed,
    JobStarted,
    JobStepped,
    JobSuspended,
    JobTold,
    JobVacated,
    MachineJoined,
    MachineLeft,
    Match,
    PrincipalCharged,
    PrincipalDeleted,
    PrincipalReset,
    PrincipalSet,
    Rejection,
    Usage,
)
from kettle_wire.events.codec import Recorded
from kettle_wire.events.job import ServiceUse
from kettle_wire.tasks import Step

EXAMPLES: list[tuple[str, Recorded]] = [
    (
        "cluster/12",
        ClusterSubmitted(
            cluster=12,
            owner="alice",
            ad={"Cmd": "/bin/sh", "RequestMemory": 2**60},
            columns=["Arguments"],
            rows=[["1"], ["2"]],
        ),
    ),
    (
        "cluster/13",
        FactorySubmitted(
            cluster=13,
            owner="alice",
            ad={"Cmd": "/bin/sh", "JobMaterializeMaxIdle": 1},
            columns=["Arguments"],
            rows=[["1"], ["2"], ["3"]],
        ),
    ),
    ("factory/13", FactoryMaterialized(cluster=13, owner="alice", first=0, count=1)),
    ("factory/13", FactoryChanged(cluster=13, first=1, max_idle=1, paused=1, reason="later", by="alice")),
    ("factory/13", FactoryClosed(cluster=13, owner="alice", first=1, count=2, by="alice")),
    ("job/12.0", JobAssigned(attempt=1, claim="c#1", slot="slot1_1@node", startd="node")),
    ("job/12.0", JobStarted(attempt=1, pid=4711, at=1.5)),
    ("job/12.0", JobNodeStarted(attempt=1, node=1, claim="c#2", slot="slot1_2@node", at=1.5)),
    ("job/12.0", JobNodeEnded(attempt=1, node=1, exit=ExitRecord(code=0), usage=Usage(wall=1.0))),
    ("job/12.0", JobSuspended(attempt=1, processes=2, at=2.5)),
    ("job/12.0", JobContinued(attempt=1, at=3.5)),
    ("job/12.0", JobDisconnected(attempt=1, reason="the startd node does not answer")),
    ("job/12.0", JobReconnected(attempt=1)),
    ("job/12.0", JobCheckpointed(attempt=1, number=1, at=4.5, usage=Usage(wall=1.0, sent=100))),
    ("job/12.0", JobDeferred(until=1767225600)),
    ("job/12.0", JobTold(attempt=1, id="0f", attributes={"Stage": 2}, notes=["half of it is done"])),
    ("job/12.0", JobStepped(attempt=1, first=1, steps=[Step(kind="task", outcome="done", task=0, code=0)])),
    ("job/12.0", JobEdited(attributes={"RequestMemory": 64}, by="alice")),
    (
        "job/12.0",
        JobServed(
            attempt=1,
            tunnel="up",
            services=["web:8080/http"],
            uses=[ServiceUse(person="alice", service="web", because="owner", connections=1, received=10)],
        ),
    ),
    ("job/12.0", JobOrdered(attempt=1, order="vacate", reason="by hand", by="alice")),
    ("job/12.0", JobVacated(attempt=1, ending=Ending(code=1009, reason="drained"), usage=Usage(wall=1.0))),
    ("job/12.0", JobHeld(code=1, reason="by hand", by="alice")),
    ("job/12.0", JobReleased(by="alice")),
    ("job/12.0", JobCompleted(attempt=2, exit=ExitRecord(code=0), usage=Usage(wall=2.5, memory_kib=1024))),
    ("job/12.1", JobKept()),
    ("job/12.1", JobRemoved(reason="not needed", by="alice")),
    ("job/12.1", JobLeft(reason="via condor_rm -forcex (by user alice)", by="alice")),
    (
        "claim/c#1",
        ClaimGranted(
            claim="c#1",
            startd="node",
            slot="slot1_1@node",
            slot_ad={"Cpus": 1},
            submitter="alice@ap1",
            autocluster=1,
            lease=10.0,
        ),
    ),
    ("claim/c#1", ClaimEnded(claim="c#1", reason="released")),
    (
        "cycle/7",
        CycleNegotiated(
            cycle=7,
            started=1.0,
            duration=0.1,
            slots=4,
            idle=2,
            matches=[
                Match(submitter="alice@ap1", schedd="ap1", autocluster=1, slot="s", startd="node", count=1)
            ],
            rejections=[
                Rejection(
                    submitter="bob@ap1", schedd="ap1", autocluster=2, count=1, reason="no slot", slots=4
                )
            ],
        ),
    ),
    ("machine/node", MachineJoined(machine="node", cpus=4, memory=8192)),
    ("machine/node", MachineLeft(machine="node", reason="drained")),
    (
        "principal/alice",
        PrincipalCharged(principal="alice", since=1.0, at=61.0, half_life=86_400.0, slots=1.0, weight=8.0),
    ),
    ("principal/alice", PrincipalSet(principal="alice", setting="factor", value=10.0, at=61.0, by="grace")),
    ("principal/alice", PrincipalReset(principal="alice", at=61.0, by="grace")),
    ("principal/alice", PrincipalDeleted(principal="alice", at=61.0, by="grace")),
]
