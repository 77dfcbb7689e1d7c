"""
An example of each event of compute entrypoints, with its stream, and of what they have their schedd record.
"""

from typing import Final

from kettle_wire.ads.types import Expr
from kettle_wire.attempts import Ending
from kettle_wire.batch import BatchEnd, BatchRequest, BatchState, EndCause
from kettle_wire.codes import Universe, VacateCode
from kettle_wire.events.batch import (
    BatchActivated,
    BatchClaimed,
    BatchDeferred,
    BatchEnded,
    BatchHoldOrdered,
    BatchInDoubt,
    BatchReleased,
    BatchRenewed,
    BatchSeen,
    BatchStopOrdered,
    BatchSubmitted,
    BatchSubmitting,
)
from kettle_wire.events.cluster import ClusterSubmitted
from kettle_wire.events.codec import Recorded
from kettle_wire.events.job import JobRouted, JobUnrouted
from kettle_wire.events.machine import AdHeard, AdKept
from kettle_wire.events.payload import PayloadBegun, PayloadOver, PilotOver
from kettle_wire.events.route import (
    DrainBegun,
    DrainOver,
    RouteDecided,
    RoutedProc,
    RouteFailed,
    RouteForgotten,
    RoutesLoaded,
    RoutesRefused,
)
from kettle_wire.jobs import JobId
from kettle_wire.payloads import Payload
from kettle_wire.routes import RefusalKind, RouteRefusal, RouteStep

_VERSION: Final = "0f1e2d3c4b5a6978"
_CLAIM: Final = "schedd.schedd#1#7"
_BATCH: Final = f"batch/{_CLAIM}"
_REFUSED: Final = RouteRefusal("GPU", RefusalKind.REQUIREMENTS, "RequestGPUs > 0 is undefined")
_REMOVED: Final = Ending(code=VacateCode.RemovedInBatchSystem, reason="job 4711 was removed there")

ENTRYPOINT: Final[list[tuple[str, Recorded]]] = [
    (
        "routes/file",
        RoutesLoaded(
            version=_VERSION, text="JOB_ROUTER_ROUTE_NAMES = GPU Slurm\n", source="/etc/kettle/routes"
        ),
    ),
    (
        "routes/file",
        RoutesRefused(version="9c73", source="/etc/kettle/routes", problems=["line 7: SET x: no expression"]),
    ),
    (
        "decision/12",
        RouteDecided(
            jobs=[RoutedProc(0, 1), RoutedProc(1, 1)],
            version=_VERSION,
            owner="ada",
            route="Slurm",
            turn=2,
            attributes={
                "JobUniverse": int(Universe.GRID),
                "GridResource": "batch slurm",
                "BatchRuntime": 3600,
            },
            removed=["PeriodicRemove"],
            refusals=[_REFUSED],
            trace=[RouteStep("route Slurm", 4, "BatchRuntime", None, 3600)],
        ),
    ),
    (
        "decision/13",
        RouteDecided(jobs=[RoutedProc(0, 1)], version=_VERSION, owner="ada", turn=2, refusals=[_REFUSED]),
    ),
    (
        "route/Slurm",
        RouteFailed(failures=3, until=1_700_000_090.0, reason="job 12.0: job 4711 was removed there"),
    ),
    ("door/drain", DrainBegun(by="root", reason="new cooling, until Monday")),
    ("door/drain", DrainOver(by="root")),
    ("decision/13", RouteForgotten()),
    (
        _BATCH,
        BatchClaimed(
            claim=_CLAIM,
            proof="00" * 32,
            system="slurm",
            schedd="schedd",
            submitter="ada",
            lease=2_592_000.0,
            until=1_702_592_000.0,
        ),
    ),
    (
        _BATCH,
        BatchActivated(
            job=JobId(12, 0),
            attempt=1,
            owner="ada",
            intent="kabcdefghijklmn",
            request=BatchRequest(cpus=2, memory=2000, queue="short"),
            at=1_700_000_001.0,
        ),
    ),
    (_BATCH, BatchSubmitting(number=1, at=1_700_000_002.0)),
    (_BATCH, BatchInDoubt(words="the connection was closed", at=1_700_000_003.0)),
    (_BATCH, BatchDeferred(words="the queue is full", again=1_700_000_010.0)),
    (_BATCH, BatchSubmitted(id="4711", at=1_700_000_012.0)),
    (_BATCH, BatchSeen(state=BatchState.RUNNING, at=1_700_000_020.0, host="node7")),
    (_BATCH, BatchHoldOrdered(held=True, number=1)),
    (_BATCH, BatchRenewed(until=1_703_888_000.0)),
    (_BATCH, BatchStopOrdered(ending=_REMOVED, at=1_700_000_030.0)),
    (_BATCH, BatchEnded(at=1_700_000_040.0, end=BatchEnd(cause=EndCause.REMOVED), ending=_REMOVED)),
    (_BATCH, BatchReleased(reason="the job has left the queue")),
]

PAYLOADS: Final[list[tuple[str, Recorded]]] = [
    (
        "payload/12.0",
        PayloadBegun(
            by="ada",
            payload=Payload(name="atlas.4711", owner="bob", vo="atlas", host="node7", command="simulate"),
        ),
    ),
    ("payload/12.0", PayloadBegun(by="ada", payload=Payload(name="atlas.4712", owner="carol"))),
    ("payload/12.0", PayloadOver(by="ada", name="atlas.4711", exit_code=1)),
    ("payload/12.0", PilotOver(by="ada")),
    ("payload/12.0", PayloadBegun(by="ada", payload=Payload(name="atlas.4712", owner="carol"))),
    ("payload/13.0", PayloadBegun(by="ada", payload=Payload(name="atlas.4713", owner="bob"))),
    ("payload/13.0", PilotOver(by="ada", gone=True)),
]

_SILENT: Final = "Forwarded.view=40ce=2Esite=2Eexample.Scheduler.ce=2Esite=2Eexample"
REGISTERED: Final[list[tuple[str, Recorded]]] = [
    (
        f"registered/{_SILENT}",
        AdKept(key=_SILENT, ad={"Name": "ce.site.example", "LastHeardFrom": 1_700_000_000}),
    ),
    (f"registered/{_SILENT}", AdHeard(key=_SILENT)),
    (
        f"registered/{_SILENT}",
        AdKept(key=_SILENT, ad={"Name": "ce.site.example", "LastHeardFrom": 1_700_000_090}),
    ),
]
"""What a registry records of an entrypoint that it does not hear of."""

ROUTED: Final[list[tuple[str, Recorded]]] = [
    (
        "cluster/12",
        ClusterSubmitted(
            cluster=12,
            owner="ada",
            ad={"Cmd": "/bin/true", "AwaitsRoute": True, "Rank": Expr("Memory"), "RequestMemory": 32},
            columns=[],
            rows=[[], [], []],
        ),
    ),
    (
        "job/12.0",
        JobRouted(
            route="Slurm",
            number=1,
            version=_VERSION,
            attributes={
                "JobUniverse": int(Universe.GRID),
                "GridResource": "batch slurm",
                "RequestMemory": 64,
            },
            removed=["Rank"],
            before={"JobUniverse": int(Universe.VANILLA), "RequestMemory": 32, "Rank": Expr("Memory")},
            added=["GridResource"],
        ),
    ),
    ("job/12.1", JobUnrouted(number=1, reason="no route takes it: GPU: RequestGPUs > 0 is undefined")),
    (
        "job/12.2",
        JobRouted(
            route="Here",
            number=1,
            version=_VERSION,
            attributes={"RequestMemory": 64},
            before={"RequestMemory": 32},
        ),
    ),
    (
        "job/12.2",
        JobUnrouted(
            number=2, reason="an administrator wants it", by="root", attributes={"RequestMemory": 32}
        ),
    ),
]
"""In the queue of a schedd."""
