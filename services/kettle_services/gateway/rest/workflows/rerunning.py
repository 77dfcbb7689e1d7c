"""
New runs of workflows that are over, in which what has succeeded counts as done.

What was sent over HTTP lies in the spool of the access point, with what its nodes have left there, and is given to the new run from
there.  The files of other workflows are their owner's, and nothing here may read them.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from kettle.client import Client
from kettle.client.errors import CommandRefusedError
from kettle.dag.building.parser import parse
from kettle.dag.files.rerun_file import rerun_lines
from kettle.dag.plan import plan_of
from kettle.dag.rerun import Rerun, RerunError, rerun
from kettle.dag.view.run_view import RunView
from kettle.prominence.workflow_orders import WorkflowOrder
from kettle_services.gateway.rest.access_points import AccessPoints
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.dag_jobs import DagJob, DagJobs
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_services.gateway.rest.job_files import LARGEST_PIECE, JobSource, pieces, source_of
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_services.gateway.rest.spooling import SmallFile
from kettle_services.gateway.rest.workflows.access import WorkflowAccess
from kettle_services.gateway.rest.workflows.making import DAG_NAME
from kettle_services.gateway.rest.workflows.views import Watched
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.queue import QUERY_JOBS, QueryJobs, Select
from kettle_wire.jobs import JobId
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.workflow_making import MOST_SHOWN, RerunWorkflow, WorkflowRerun
from kettle_wire.workflows import WORKFLOW_FILE, Plan

MOST_BYTES: Final = 64 << 20
MOST_FILES: Final = 1_000
"""What is given to a new run: it is in memory meanwhile."""
_DONE: Final = f"{DAG_NAME}.rerun"
_AT_ONCE: Final = 2
_FAILED: Final = "failed"
"""What `from` says if nothing is said."""

RerunDocument = Callable[[Client, Person, int, WorkflowOrder, list[int]], Awaitable[int]]
"""
Runs a document again in the name of a person, of the number of the earlier run, what that one was given, and the nodes that count
as done; the cluster of the DAG job.
"""


class Reruns:
    """Makes them."""

    def __init__(
        self,
        people: PersonConnections,
        access_points: AccessPoints,
        access: WorkflowAccess,
        dag_jobs: DagJobs,
    ) -> None:
        self._people = people
        self._access_points = access_points
        self._access = access
        self._dag_jobs = dag_jobs
        self._repeats = Repeats()
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        self._rerun_document: RerunDocument | None = None

    def rerun_documents_by(self, run: RerunDocument) -> None:
        """Documents of PROMINENCE are run again by this, where the gateway serves its interface."""
        self._rerun_document = run

    async def rerun(self, asked: Asked) -> Answer:
        """Run again what has not succeeded, or what is named; or say what that would be."""
        parameters: RerunWorkflow = asked.parameters
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        watched = await self._access.watched(asked, parameters.id)
        _require_over(asked, watched)
        async with self._at_once, self._people.of(asked.person) as client:
            there = await self._access_points.at(client, watched.schedd, "/path/id")
            return await self._rerun(asked, there, watched)

    async def _rerun(self, asked: Asked, client: Client, watched: Watched) -> Answer:
        """`client`: the person's, at the access point of the workflow."""
        view, parameters = watched.view, asked.parameters
        number = view.started.workflow
        source = await source_of(client, JobId(number, 0))
        if source.running:
            raise _conflict(
                f"the DAG job of workflow {watched.id} is about to end: try again in a moment", retry_after=1
            )
        file, text = await self._sent(client, source, watched)
        plan = await asyncio.to_thread(_plan, view, file, text)
        found = _chosen(view, plan, parameters)
        told = WorkflowRerun(
            done=len(found.done),
            count=len(found.runs),
            runs=[plan.names[node] for node in found.runs[:MOST_SHOWN]],
            assumed=len(found.assumed),
        )
        if parameters.dry_run or not found.runs:
            return Answer(told)
        if file == DAG_NAME:
            cluster = await self._dag_again(asked, client, source, view, plan, found, text)
        else:
            cluster = await self._document_again(asked, client, number, text, found)
        again = msgspec.structs.replace(told, id=f"{cluster}@{watched.schedd}")
        return self._repeats.answered(asked, Answer(again, status=201))

    async def _sent(self, client: Client, source: JobSource, watched: Watched) -> tuple[str, bytes]:
        """
        The file of a workflow that was sent, by its name; raises RequestRefused: it was not, or is not kept any more.
        """
        number, name = watched.view.started.workflow, watched.id
        select = Select(jobs=[JobId(number, 0)])
        projection = [WORKFLOW_FILE, "StageInStart"]
        queued = (await client.requests.ask(QUERY_JOBS, QueryJobs(select=select, projection=projection))).jobs
        if not queued:
            raise _conflict(
                f"the files of workflow {name} are not kept any more: send it again, or where they are say kettle dag rerun {number}"
            )
        [ad] = queued
        file = str(ad.get(WORKFLOW_FILE, "")) or watched.view.started.files[0]
        if "StageInStart" not in ad or (WORKFLOW_FILE not in ad and file != DAG_NAME):
            raise _conflict(
                f"workflow {name} was not sent over HTTP, and its files are its owner's: say kettle dag rerun {number} where they are"
            )
        try:
            return file, await whole(source, file)
        except CommandRefusedError as error:
            if error.code != RefusalCode.NOT_FOUND:
                raise
            raise _conflict(
                f"the file {file} of workflow {name} is not there any more: send it again"
            ) from error

    async def _dag_again(
        self,
        asked: Asked,
        client: Client,
        source: JobSource,
        view: RunView,
        plan: Plan,
        found: Rerun,
        text: bytes,
    ) -> int:
        lines = rerun_lines([DAG_NAME], plan, found, _states(view), time.time())
        done = "".join(f"{line}\n" for line in lines).encode()
        files = [SmallFile(DAG_NAME, text), SmallFile(_DONE, done), *await _left(source)]
        dag = DagJob(file=DAG_NAME, files=files, rescue_file=_DONE, name=asked.parameters.name)
        return (await self._dag_jobs.submit(client, asked.person, dag, command=command_id(asked))).cluster

    async def _document_again(
        self, asked: Asked, client: Client, number: int, text: bytes, found: Rerun
    ) -> int:
        if self._rerun_document is None:
            raise _conflict(
                "this gateway runs no documents of PROMINENCE: its administrator sets prominence = true in [gateway]"
            )
        order = msgspec.json.decode(text, type=WorkflowOrder)
        return await self._rerun_document(client, asked.person, number, order, [*found.done])


def _require_over(asked: Asked, watched: Watched) -> None:
    """Raises RequestRefused."""
    owner = watched.view.started.owner
    if owner != asked.person.name:
        raise RequestRefused(
            403,
            ProblemCode.NOT_PERMITTED,
            f"workflow {watched.id} is {owner}'s, and a new run would be {asked.person.name}'s: {owner} may run it again",
        )
    if watched.view.ended is None:
        raise _conflict(
            f"workflow {watched.id} is not over: what has failed in it runs again when it has ended; DELETE ends it"
        )


def _plan(view: RunView, file: str, text: bytes) -> Plan:
    """The plan without what counted as done in the earlier run only."""
    if file != DAG_NAME:
        return msgspec.structs.replace(view.plan, done=[])
    return plan_of(parse([DAG_NAME], lambda _path: text.decode(errors="surrogateescape")))


def _chosen(view: RunView, plan: Plan, parameters: RerunWorkflow) -> Rerun:
    after = [] if parameters.after == [_FAILED] and _FAILED not in plan.names else parameters.after
    try:
        return rerun(plan, _states(view), after=after, only=parameters.only)
    except RerunError as error:
        place = "/query/only" if parameters.only else "/query/from"
        raise refused_field(place, str(error), code=ProblemCode.NOT_FOUND, status=422) from error


def _states(view: RunView) -> dict[str, int]:
    return dict(zip(view.plan.names, view.states, strict=True))


async def _left(source: JobSource) -> list[SmallFile]:
    """What the nodes of a DAG have left in its directory; raises RequestRefused: that is too much."""
    names: list[str] = []
    size, after, more = 0, "", True
    while more:
        files, more = await source.list(after)
        for each in files:
            after = each.path
            if not each.path.startswith((DAG_NAME, "_condor_")):
                names.append(each.path)
                size += each.size
        if size > MOST_BYTES or len(names) > MOST_FILES:
            raise _conflict(
                f"the nodes of the workflow have left more than {MOST_FILES:,} files or {MOST_BYTES >> 20} MiB, which is the most that is"
                " given to a new run: fetch them (condor_transfer_data) and submit the DAG where they are"
            )
    return [SmallFile(name, await whole(source, name)) for name in names]


async def whole(source: JobSource, name: str) -> bytes:
    """
    A file.  Raises CommandRefusedError, and RequestRefused: it is larger than what is kept in memory, as a node may have made it.
    """
    opened = await source.open(name, 0, LARGEST_PIECE)
    if opened.size > MOST_BYTES:
        raise _conflict(
            f"the file {name} has more than {MOST_BYTES >> 20} MiB, which is the most that is given to a new run: submit the DAG where "
            "its files are"
        )
    return b"".join([piece async for piece in pieces(source, name, opened, opened.size)])


def _conflict(sentence: str, *, retry_after: float = 0.0) -> RequestRefused:
    return RequestRefused(409, ProblemCode.NOT_RERUN, sentence, retry_after=retry_after)
