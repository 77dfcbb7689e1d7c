"""Simulations of pools over HTTP: each is a job of the pool, of who has asked for it."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.rest.jobs import JobName
from kettle_wire.rest.route import Moment, Route
from kettle_wire.simulations import SimulatedRun, SimulationProgress

StudyFileName = Annotated[
    str, msgspec.Meta(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$", examples=["trace.swf"])
]
SimulationState = Literal["queued", "running", "held", "done", "failed", "removed"]


class StudyFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A file that the study names."""

    name: StudyFileName
    text: Annotated[str, msgspec.Meta(max_length=4 << 20)]


class NewSimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be simulated."""

    study: Annotated[str, msgspec.Meta(min_length=1, max_length=256 << 10)]
    """TOML, as `kettle simulate run --help` explains it."""
    files: Annotated[list[StudyFile], msgspec.Meta(max_length=100)] = []
    """Traces and workflows that it names."""
    seeds: Annotated[
        list[Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]], msgspec.Meta(max_length=1000)
    ] = []
    """It is played once with each; without any, with the one of the study."""
    name: Annotated[str, msgspec.Meta(max_length=100, pattern=r"^[^\x00-\x1f]*$")] = ""
    """What it is called in lists, for people."""
    skip_bad: bool = False
    """Leave out lines of traces that are no jobs."""
    table: bool = False
    """Write a row for each job, as the file `jobs.parquet` of the job; of one seed only."""
    drawings: bool = False
    """Draw it, as SVG in the directory `drawings`; of one seed only."""


class BeginSimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Simulate a pool: a job of this pool plays the study, with one core and as much memory and time as the gateway's settings allow.
    Its files are had as those of any job.
    """


class ListSimulations(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """List one's own simulations that are still in the queue, without their results."""


class GetSimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Look at a simulation of one's own, with its result when there is one."""

    id: JobName


class FollowSimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Follow how far a simulation of one's own is, until it is over: the last event has its result."""

    id: JobName


class RemoveSimulation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Remove a simulation of one's own, whether it runs or is over."""

    id: JobName


class SimulationView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A simulation."""

    id: str
    """Of its job, `CLUSTER.PROC@SCHEDD`."""
    state: SimulationState
    name: str = ""
    submitted: Moment | None = None
    entered: Moment | None = None
    """When it came into this state."""
    problem: str = ""
    """Why it is held or has failed: what the study says that cannot be, for one."""
    progress: SimulationProgress | None = None
    """While it runs."""
    runs: list[SimulatedRun] | None = None
    """When it is done."""
    skipped: int = 0
    """Lines of traces that are no jobs."""


class SimulationList(msgspec.Struct, frozen=True, kw_only=True):
    """One's own simulations, the oldest first."""

    simulations: list[SimulationView]


BEGIN_SIMULATION = Route(
    "POST",
    "/simulations",
    "create_simulation",
    parameters=BeginSimulation,
    body=NewSimulation,
    reply=SimulationView,
    level="WRITE",
    errors=(404, 413, 415, 422),
    headers=("Idempotency-Key",),
    creates=True,
)
LIST_SIMULATIONS = Route(
    "GET", "/simulations", "list_simulations", parameters=ListSimulations, reply=SimulationList
)
GET_SIMULATION = Route(
    "GET",
    "/simulations/{id}",
    "get_simulation",
    parameters=GetSimulation,
    reply=SimulationView,
    errors=(404,),
)
FOLLOW_SIMULATION = Route(
    "GET",
    "/simulations/{id}/events",
    "follow_simulation",
    parameters=FollowSimulation,
    reply=SimulationView,
    errors=(404,),
    stream=True,
)
REMOVE_SIMULATION = Route(
    "DELETE",
    "/simulations/{id}",
    "remove_simulation",
    parameters=RemoveSimulation,
    reply=SimulationView,
    level="WRITE",
    errors=(404,),
)
