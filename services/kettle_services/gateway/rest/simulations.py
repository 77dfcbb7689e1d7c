"""
Simulations over HTTP: each is a job of who asks for it, which plays a study with the program of `kettle simulate`.

So the pool's own rules say when it runs and what it counts for, machines of the pool bound its memory and its time, and what a study
names is read with the rights of a job.  Here a study is only looked at: what cannot be in its tables is refused before there is a job.
"""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import msgspec
from aiohttp import web

from kettle.bus.ports import BusError
from kettle.client import Client, ClientError
from kettle.client.errors import CommandRefusedError
from kettle.client.jobs.access import STDERR, STDOUT
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.dag_jobs import taken_back
from kettle_services.gateway.rest.event_sender import EventSender, StreamCut, server_sent
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_services.gateway.rest.job_files import JobSource, pieces, source_of
from kettle_services.gateway.rest.jobs import job_name
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_services.gateway.rest.simulation_jobs import (
    STUDY,
    SimulationTerms,
    job_ad,
    last_progress,
    last_words,
    told,
)
from kettle_services.gateway.rest.spooling import SmallFile, give_small
from kettle_services.gateway.rest.streams import Streams
from kettle_wire.ads.types import Ad
from kettle_wire.codes import JobStatus, RefusalCode
from kettle_wire.commands.queue import ACT, EDIT_JOBS, SUBMIT, Act, EditJobs, Select, Submit
from kettle_wire.jobs import JobId
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.simulations import (
    FollowSimulation,
    GetSimulation,
    NewSimulation,
    RemoveSimulation,
    SimulationList,
    SimulationView,
)
from kettle_wire.simulations import SimulatedRuns

_MINE: Final = "KettleSimulation =?= true"
_SHOWN: Final = (
    "ClusterId", "ProcId", "Owner", "JobStatus", "JobBatchName", "QDate", "EnteredCurrentStatus", "ExitCode", "ExitBySignal",
    "HoldReason", "HoldReasonCode",
)  # fmt: skip
_LOOK_S: Final = 1.0
_TAIL: Final = 4096
"""Bytes of what it has said last."""
_LARGEST_RESULT: Final = 8 << 20
_OVER: Final = ("held", "done", "failed", "removed")
_AGAIN_S: Final = 60.0
_NOTHING_THERE: Final = frozenset({RefusalCode.NOT_FOUND, RefusalCode.NOT_RUNNING, RefusalCode.UNREADABLE})
"""Of a file: the job has left none, does not run any more, or its sandbox has none yet or any more."""


class Simulations:
    """Begins them, and tells how far they are."""

    def __init__(
        self, people: PersonConnections, access_points: AccessPoints, streams: Streams, terms: SimulationTerms
    ) -> None:
        self._people: Final = people
        self._access_points: Final = access_points
        self._streams: Final = streams
        self._terms: Final = terms
        self._repeats: Final = Repeats()

    async def create(self, asked: Asked) -> Answer:
        """A new one."""
        new: NewSimulation = asked.body
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        _require_one_seed(new)
        await asyncio.to_thread(_require_study, new)
        files = [SmallFile(STUDY, new.study.encode())]
        files += [SmallFile(file.name, file.text.encode()) for file in new.files]
        async with self._people.of(asked.person) as client:
            await self._require_room(client, asked.person.name)
            request = Submit(
                id=command_id(asked), ad=job_ad(new, self._terms), columns=[], rows=[[]], spool=True
            )
            made = await client.requests.ask(SUBMIT, request)
            try:
                await give_small(client, made.cluster, [files])
            except (ClientError, BusError, RequestRefused):
                await taken_back(client, made.cluster)
                raise
            view = told(await _ad(client, JobId(made.cluster, 0)), client.pool.schedd)
        return self._repeats.answered(asked, Answer(view, status=201))

    async def list(self, asked: Asked) -> Answer:
        """All of one's own."""
        async with self._people.of(asked.person) as client:
            ads = await _all(client, asked.person.name)
            return Answer(SimulationList(simulations=[told(ad, client.pool.schedd) for ad in ads]))

    async def get(self, asked: Asked) -> Answer:
        """One."""
        parameters: GetSimulation = asked.parameters
        return Answer(await self._looked_at(asked, parameters.id))

    async def follow(self, asked: Asked) -> web.StreamResponse:
        """Send how far it is, until it is over."""
        parameters: FollowSimulation = asked.parameters
        first = await self._looked_at(asked, parameters.id)
        with self._streams.one_more(asked.person.name):
            sender = await EventSender.begun(asked)
            return await sender.send_all(self._events(asked, first))

    async def remove(self, asked: Asked) -> Answer:
        """Take its job away."""
        parameters: RemoveSimulation = asked.parameters
        job, schedd = job_name(parameters.id)
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, schedd, "/path/id")
            view = told(await _own(there, asked, job), there.pool.schedd)
            select, command = Select(jobs=[job], constraint=_MINE), command_id(asked)
            if view.state in ("done", "failed"):  # only its result is kept
                edit = EditJobs(id=command, select=select, attributes={"LeaveJobInQueue": False})
                await there.requests.ask(EDIT_JOBS, edit)
            else:
                await there.requests.ask(ACT, Act(id=command, action="remove", select=select))
        return Answer(SimulationView(id=view.id, state="removed", name=view.name, submitted=view.submitted))

    async def _require_room(self, client: Client, person: str) -> None:
        """Raises RequestRefused: the person has as many as one may have."""
        most = self._terms.of_one
        if not most:
            raise RequestRefused(
                404,
                ProblemCode.NOT_FOUND,
                "this gateway begins no simulations: simulations_of_one of [gateway] is 0",
            )
        open_ones = [ad for ad in await _all(client, person) if ad.get("JobStatus") != JobStatus.COMPLETED]
        if len(open_ones) >= most:
            raise RequestRefused(
                429,
                ProblemCode.TOO_MANY,
                f"you have {len(open_ones)} simulations that are not over, and {most} is the most of one person: "
                "wait for one, or remove one",
                retry_after=_AGAIN_S,
            )

    async def _looked_at(self, asked: Asked, name: str) -> SimulationView:
        job, schedd = job_name(name)
        async with self._people.of(asked.person) as client:
            there = await self._access_points.at(client, schedd, "/path/id")
            view = told(await _own(there, asked, job), there.pool.schedd)
            if view.state not in ("running", "done", "failed"):
                return view
            return await _with_files(view, await source_of(there, job))

    async def _events(self, asked: Asked, view: SimulationView) -> AsyncGenerator[bytes]:
        """Whatever is new; raises StreamCut."""
        yield server_sent("simulation", msgspec.to_builtins(view))
        while view.state not in _OVER:
            await asyncio.sleep(_LOOK_S)
            before, view = view, await self._looked_at(asked, view.id)
            if view != before:
                yield server_sent("simulation", msgspec.to_builtins(view))
        raise StreamCut("the simulation is over, and that was its last event")


def _require_one_seed(new: NewSimulation) -> None:
    """Raises RequestRefused: files of one run are asked for, and there are several."""
    for field in ("table", "drawings"):
        if getattr(new, field) and len(new.seeds) > 1:
            raise refused_field(
                f"/body/{field}",
                "the files of one seed can be written, and several are asked for",
                code=ProblemCode.BODY_INVALID,
                status=422,
            )


def _require_study(new: NewSimulation) -> None:
    """
    Raises RequestRefused: something in the study cannot be, or it names a file that has not come. No file is opened.
    """
    from kettle_services.simulator.checked_file import CheckedFile  # numpy, which no other answer needs
    from kettle_services.simulator.simulation_file import SimulationFileError, tables_of

    have = [file.name for file in new.files]
    for number, name in enumerate(have):
        if name == STUDY or name in have[:number]:
            raise refused_field(
                f"/body/files/{number}/name",
                f"there is a {name} already",
                code=ProblemCode.BODY_INVALID,
                status=422,
            )
    try:
        file = CheckedFile(Path(STUDY), SimulationFileError, text=new.study)
        for keys, name in tables_of(file).names:
            if name not in have:
                raise file.refuse(keys, f"{name} is not among the files that have come")
    except SimulationFileError as error:
        raise refused_field("/body/study", str(error), code=ProblemCode.BODY_INVALID, status=422) from error


async def _all(client: Client, person: str) -> list[Ad]:
    return await client.jobs(Select(owners=[person], constraint=_MINE), projection=_SHOWN)


async def _ad(client: Client, job: JobId) -> Ad:
    """Raises RequestRefused: there is no such simulation in the queue."""
    found = await client.jobs(Select(jobs=[job], constraint=_MINE), projection=_SHOWN)
    if not found:
        raise RequestRefused(
            404,
            ProblemCode.NOT_FOUND,
            f"there is no simulation {job} in the queue: it was removed, or is over for longer than its result is kept",
        )
    return found[0]


async def _own(client: Client, asked: Asked, job: JobId) -> Ad:
    """
    Raises RequestRefused: there is no such simulation, or it is somebody else's, of which nothing is told.
    """
    ad = await _ad(client, job)
    if ad.get("Owner") != asked.person.name:
        raise RequestRefused(404, ProblemCode.NOT_FOUND, f"you have no simulation {job}")
    return ad


async def _with_files(view: SimulationView, source: JobSource) -> SimulationView:
    """With what its job has written: how far it is, what it came to, or why it came to nothing."""
    try:
        if view.state == "done":
            result = await _result(source)
            return msgspec.structs.replace(view, runs=result.runs, skipped=result.skipped)
        said = (await source.open(STDERR, -_TAIL, _TAIL)).data
    except CommandRefusedError as error:
        if error.code not in _NOTHING_THERE:
            raise
        return view  # it has written nothing yet, or its end is about to be recorded
    except msgspec.MsgspecError:
        problem = "its job has ended well and has not written what a simulation writes: look at its files"
        return msgspec.structs.replace(view, state="failed", problem=problem)
    if view.state == "running":
        return msgspec.structs.replace(view, progress=last_progress(said))
    return msgspec.structs.replace(view, problem=last_words(said) or view.problem)


async def _result(source: JobSource) -> SimulatedRuns:
    """Raises MsgspecError: it is none."""
    opened = await source.open(STDOUT, 0, _LARGEST_RESULT)
    if opened.size > _LARGEST_RESULT:
        raise msgspec.ValidationError("it is too large")
    data = b"".join([piece async for piece in pieces(source, STDOUT, opened, opened.size)])
    return msgspec.json.decode(data, type=SimulatedRuns)
