"""Workflows that are sent: looked at, with everything that is wrong at once, and run."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

from kettle.client import Client
from kettle.dag.building.options import Bounds
from kettle.dag.building.parser import check
from kettle.dag.faults import Fault as DagFault
from kettle.dag.structure import Dag, NodeKind
from kettle.dag.summary import cycle_faults, summary
from kettle.prominence import wfformat
from kettle.prominence.dry_run import dry_run
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.job_documents import parsed
from kettle.prominence.workflow_documents import is_workflow, read_workflow
from kettle.prominence.yaml_documents import YAML_TYPES, YamlMissingError, json_of
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.connections import PersonConnections
from kettle_services.gateway.rest.dag_jobs import DagJob, DagJobs
from kettle_services.gateway.rest.idempotency import Repeats, command_id
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_services.gateway.rest.spooling import SmallFile
from kettle_wire.prominence.dry_run import DryRun
from kettle_wire.prominence.faults import Fault
from kettle_wire.rest.problem import FieldProblem, ProblemCode
from kettle_wire.rest.workflow_making import DAG_TEXT, DOCUMENT, YAML_DOCUMENT, NewWorkflow, SubmitWorkflow

DAG_NAME: Final = "workflow.dag"
"""What a DAG file is called that was sent as text."""
_NEITHER: Final = (
    "the document is no workflow: one of PROMINENCE has jobs, and an instance of WfFormat a schemaVersion"
)
_MOST_TOLD: Final = 1_000
_BOUNDS: Final = Bounds(faults=_MOST_TOLD - 1, changes=2_000_000)
_LOOKS: Final = 2
"""Workflows that are looked at at a time: each may take seconds, and other work waits for the same threads."""
_SHOWN: Final = 200
"""Nodes of a critical path that are named."""


RunDocument = Callable[[Client, Person, str], Awaitable[int]]
"""Runs a document of PROMINENCE in the name of a person; the cluster of its DAG job."""


class NewWorkflows:
    """Looks at them, and has them run."""

    def __init__(self, people: PersonConnections, dag_jobs: DagJobs) -> None:
        self._people = people
        self._dag_jobs = dag_jobs
        self._repeats = Repeats()
        self._looking = asyncio.Semaphore(_LOOKS)
        self._run_document: RunDocument | None = None

    def run_documents_by(self, run: RunDocument) -> None:
        """Documents of PROMINENCE are run by this, where the gateway serves its interface."""
        self._run_document = run

    async def submit(self, asked: Asked) -> Answer:
        """Run a workflow that was sent, or say what it would be."""
        parameters: SubmitWorkflow = asked.parameters
        text = await self._text(asked)
        asked = msgspec.structs.replace(asked, body=text)
        if (first := self._repeats.first_answer(asked)) is not None:
            return first
        async with self._looking:
            sent = await asyncio.to_thread(_look, text, asked.request.content_type, parameters)
        if parameters.dry_run:
            return Answer(sent.shape)
        async with self._people.of(asked.person) as client:
            cluster = await self._run(asked, client, sent)
            name = f"{cluster}@{client.pool.schedd}"
        answer = Answer(msgspec.structs.replace(sent.shape, id=name), status=201)
        return self._repeats.answered(asked, answer)

    async def _run(self, asked: Asked, client: Client, sent: "_Sent") -> int:
        """The cluster of the DAG job; raises RequestRefused."""
        if sent.not_sent:
            raise refused_workflow([*sent.not_sent])
        if client.pool.by_token and sent.on_access_point:
            raise refused_workflow([*sent.on_access_point])
        if sent.dag:
            file = SmallFile(DAG_NAME, sent.dag.encode())
            dag = DagJob(file=DAG_NAME, files=[file], name=asked.parameters.name or sent.shape.name)
            return (await self._dag_jobs.submit(client, asked.person, dag, command=command_id(asked))).cluster
        if self._run_document is None:
            raise refused_field(
                "/body",
                "this gateway runs no documents of PROMINENCE: its administrator sets prominence = true in [gateway]",
                status=422,
            )
        try:
            return await self._run_document(client, asked.person, asked.body)
        except RequestRefused as refusal:
            if refusal.status != 400:
                raise
            raise refused_workflow([FieldProblem("/body", str(refusal))]) from refusal

    async def _text(self, asked: Asked) -> str:
        """Raises RequestRefused: it is no text, or nobody reads its kind."""
        kind = asked.request.content_type
        if kind not in {DAG_TEXT, DOCUMENT, *YAML_TYPES}:
            raise RequestRefused(
                415,
                ProblemCode.BODY_TYPE,
                f"a workflow is a DAG file as {DAG_TEXT}, or a document of PROMINENCE or WfFormat as {DOCUMENT} or "
                f"{YAML_DOCUMENT}; say so in the header Content-Type",
            )
        body = await asked.request.read()
        try:
            if kind in YAML_TYPES:
                body = await asyncio.to_thread(json_of, body)
            return body.decode()
        except DocumentRefused as refusal:
            raise refused_workflow(list(_fields(refusal.faults))) from refusal
        except YamlMissingError as error:
            raise RequestRefused(415, ProblemCode.BODY_TYPE, str(error)) from error
        except UnicodeDecodeError as error:
            raise refused_field(
                "/body", "the body is no text in UTF-8", code=ProblemCode.BODY_INVALID
            ) from error


class _Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A workflow in which nothing is wrong."""

    shape: NewWorkflow
    dag: str = ""
    """Its DAG file; empty: it is a document."""
    not_sent: Sequence[FieldProblem] = ()
    """Files that it needs and that are not there."""
    on_access_point: Sequence[FieldProblem] = ()
    """What of it would run there with the rights of the person's account, which a token does not give."""


def _look(text: str, content_type: str, parameters: SubmitWorkflow) -> _Sent:
    """Raises RequestRefused with all faults."""
    return _look_at_dag(text) if content_type == DAG_TEXT else _look_at_document(text, parameters)


def _look_at_dag(text: str) -> _Sent:
    """Raises RequestRefused with all faults."""

    def read(path: str) -> str:
        if path == DAG_NAME:
            return text
        raise ValueError("a DAG that is sent as text has no other files")

    dag, found = check([DAG_NAME], read, bounds=_BOUNDS)
    faults = [*found, *cycle_faults(dag)]
    if faults:
        raise refused_workflow([_of_dag(fault) for fault in faults])
    shape = summary(dag)
    not_sent = [_of_dag(fault) for fault in _files_not_sent(dag)]
    told = NewWorkflow(
        kind="dag",
        jobs=shape.nodes,
        nodes=shape.nodes,
        height=shape.height,
        width=shape.width,
        critical_path=_shown(shape.critical_path),
        warnings=[*map(_of_dag, dag.warnings), *not_sent],
    )
    here = [_of_dag(fault) for fault in _scripts(dag)]
    return _Sent(shape=told, dag=text, not_sent=not_sent, on_access_point=here)


def _files_not_sent(dag: Dag) -> Iterator[DagFault]:
    """What nodes need that is in other files."""
    for node in dag.nodes:
        if node.description is None and not node.is_noop and not node.is_done:
            what = "DAG" if node.kind is NodeKind.SUBDAG else "submit file"
            sentence = f"the {what} {node.submit} of node {node.name} is not in this text: it can only be run where that file is"
            yield DagFault(DAG_NAME, node.line, sentence)
        for script in (node.pre, node.post, node.hold):
            if script is not None and not script.command.startswith("/"):
                program = script.command.partition(" ")[0]
                sentence = f"the script {program} of node {node.name} is not sent with this text: give its whole path"
                yield DagFault(DAG_NAME, node.line, sentence)


def _scripts(dag: Dag) -> Iterator[DagFault]:
    """What runs on the access point."""
    for node in dag.nodes:
        if node.pre or node.post or node.hold:
            sentence = (
                f"the scripts of node {node.name} would run on the access point with all rights of your account, which a token does not "
                "give: submit the workflow there, with condor_submit_dag and your account"
            )
            yield DagFault(DAG_NAME, node.line, sentence)


def _of_dag(fault: DagFault) -> FieldProblem:
    return FieldProblem(f"{fault.file}:{fault.line}", str(fault))


def _look_at_document(text: str, parameters: SubmitWorkflow) -> _Sent:
    """Raises RequestRefused with all faults."""
    try:
        document = parsed(text)
        if wfformat.is_instance(document):
            instance = wfformat.read_instance(text)
            shape = _of_document("wfformat", wfformat.dry_run(instance))
            if parameters.dry_run:
                return _Sent(shape=shape)
            return _Sent(shape=shape, dag=wfformat.dag_of(instance, replay=parameters.replay))
        if is_workflow(document):
            return _Sent(shape=_of_document("prominence", dry_run(read_workflow(text))))
        raise refused_workflow([FieldProblem("/body", _NEITHER)])
    except DocumentRefused as refusal:
        raise refused_workflow(list(_fields(refusal.faults))) from refusal


def _of_document(kind: str, shape: DryRun) -> NewWorkflow:
    return NewWorkflow(
        kind=kind,
        name=shape.name,
        jobs=shape.jobs,
        nodes=shape.nodes,
        height=shape.height,
        width=shape.width,
        critical_path=_shown(shape.critical_path),
        seconds=shape.seconds,
        is_limit=shape.is_limit,
        warnings=list(_fields(shape.warnings)),
    )


def _fields(faults: Iterable[Fault]) -> Iterator[FieldProblem]:
    return (FieldProblem(f"/body{fault.pointer}", fault.sentence) for fault in faults)


def _shown(path: Sequence[str]) -> list[str]:
    """A long chain without its middle, which is said."""
    if len(path) <= _SHOWN:
        return list(path)
    half = _SHOWN // 2
    return [*path[:half], f"... {len(path) - 2 * half:,} more ...", *path[-half:]]


def refused_workflow(faults: Sequence[FieldProblem]) -> RequestRefused:
    """The refusal of a workflow with faults."""
    told = list(islice(faults, _MOST_TOLD))
    more = f", of which {_MOST_TOLD:,} are told" if len(faults) > _MOST_TOLD else ""
    sentence = (
        faults[0].detail
        if len(faults) == 1
        else f"the workflow has {len(faults):,} faults{more}; the first: {faults[0].detail}"
    )
    return RequestRefused(422, ProblemCode.WORKFLOW_FAULTS, sentence, errors=told)
