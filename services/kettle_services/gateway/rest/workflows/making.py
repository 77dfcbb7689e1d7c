"""Workflows that are sent: looked at, with everything that is wrong at once."""

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from kettle.dag.building.parser import check
from kettle.dag.faults import Fault as DagFault
from kettle.dag.structure import Dag, NodeKind
from kettle.dag.summary import cycle_faults, summary
from kettle.prominence import wfformat
from kettle.prominence.dry_run import dry_run
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.job_documents import parsed
from kettle.prominence.workflow_documents import is_workflow, read_workflow
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.prominence.dry_run import DryRun
from kettle_wire.prominence.faults import Fault
from kettle_wire.rest.problem import FieldProblem, ProblemCode
from kettle_wire.rest.workflow_making import DAG_TEXT, DOCUMENT, SubmitWorkflow, WorkflowLook

DAG_NAME: Final = "workflow.dag"
"""What a DAG file is called that was sent as text."""
_NEITHER: Final = (
    "the document is no workflow: one of PROMINENCE has jobs, and an instance of WfFormat a schemaVersion"
)
_MOST_TOLD: Final = 1_000
_SHOWN: Final = 200
"""Nodes of a critical path that are named."""


class WorkflowMaking:
    """Looks at them."""

    async def submit(self, asked: Asked) -> Answer:
        """Look at a workflow that was sent."""
        parameters: SubmitWorkflow = asked.parameters
        text = await self._text(asked)
        look = _look_at_dag if asked.request.content_type == DAG_TEXT else _look_at_document
        found = await asyncio.to_thread(look, text)
        if not parameters.dry_run:
            raise refused_field(
                "/query/dry_run",
                "workflows are only looked at here so far: send it with dry_run=1, and run it by condor_submit_dag or the prominence client",
                status=422,
            )
        return Answer(found)

    async def _text(self, asked: Asked) -> str:
        """Raises RequestRefused: it is no text, or nobody reads its kind."""
        if asked.request.content_type not in {DAG_TEXT, DOCUMENT}:
            raise RequestRefused(
                415,
                ProblemCode.BODY_TYPE,
                f"a workflow is a DAG file as {DAG_TEXT}, or a document of PROMINENCE or WfFormat as {DOCUMENT}; say so in the "
                "header Content-Type",
            )
        try:
            return (await asked.request.read()).decode()
        except UnicodeDecodeError as error:
            raise refused_field(
                "/body", "the body is no text in UTF-8", code=ProblemCode.BODY_INVALID
            ) from error


def _look_at_dag(text: str) -> WorkflowLook:
    """Raises RequestRefused with all faults."""

    def read(path: str) -> str:
        if path == DAG_NAME:
            return text
        raise ValueError("a DAG that is sent as text has no other files")

    dag, found = check([DAG_NAME], read)
    faults = [*found, *cycle_faults(dag)]
    if faults:
        raise refused_workflow([_of_dag(fault) for fault in faults])
    shape = summary(dag)
    return WorkflowLook(
        kind="dag",
        jobs=shape.nodes,
        nodes=shape.nodes,
        height=shape.height,
        width=shape.width,
        critical_path=_shown(shape.critical_path),
        warnings=[_of_dag(fault) for fault in (*dag.warnings, *files_not_sent(dag))],
    )


def files_not_sent(dag: Dag) -> Iterator[DagFault]:
    """Nodes whose submit descriptions are in other files."""
    for node in dag.nodes:
        if node.description is None and not node.is_noop and not node.is_done:
            what = "DAG" if node.kind is NodeKind.SUBDAG else "submit file"
            sentence = f"the {what} {node.submit} of node {node.name} is not in this text: it can only be run where that file is"
            yield DagFault(DAG_NAME, node.line, sentence)


def _of_dag(fault: DagFault) -> FieldProblem:
    return FieldProblem(f"{fault.file}:{fault.line}", str(fault))


def _look_at_document(text: str) -> WorkflowLook:
    """Raises RequestRefused with all faults."""
    try:
        document = parsed(text)
        if wfformat.is_instance(document):
            return _of_document("wfformat", wfformat.dry_run(wfformat.read_instance(text)))
        if is_workflow(document):
            return _of_document("prominence", dry_run(read_workflow(text)))
        raise refused_workflow([FieldProblem("/body", _NEITHER)])
    except DocumentRefused as refusal:
        raise refused_workflow(list(_fields(refusal.faults))) from refusal


def _of_document(kind: str, shape: DryRun) -> WorkflowLook:
    return WorkflowLook(
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
