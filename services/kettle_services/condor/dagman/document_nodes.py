"""The jobs of a workflow of PROMINENCE, each made from its document when it is submitted."""

import posixpath
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.client.errors import ClientError
from kettle.dag.files.progress import Progress
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.workflow_orders import OrderedWorkflow
from kettle_services.condor.dagman.macros import NodeSoFar
from kettle_services.condor.dagman.node_jobs import NodesInCommon, attributes_of
from kettle_wire.events.workflow import NodeStep

if TYPE_CHECKING:
    from kettle.submit import Submission
    from kettle.submit.errors import SubmitError
    from kettle_wire.ads.types import Ad
    from kettle_wire.prominence.job import InputFile

_EXECUTABLE: Final = 0o755
_PLAIN: Final = 0o644


class DocumentNodes:
    """A `NodeSource`."""

    def __init__(self, common: NodesInCommon, ordered: OrderedWorkflow) -> None:
        """Writes the input files of the document to where they are sent from."""
        self._common = common
        self._ordered = ordered
        self.sent: Final = False
        self.spools: Final = True
        for place, job in enumerate(ordered.workflow.jobs):
            _write(self._inputs(place), job.inputs)
        self.workflow: Final = common.workflow
        self.batch: Final = common.batch

    def parents(self, _node: int) -> Sequence[int]:
        """None whose files are needed: what jobs of documents leave is kept by the gateway."""
        return ()

    def jobs(
        self, steps: Sequence[NodeStep], _progress: Progress, _known: Mapping[int, NodeSoFar]
    ) -> "dict[NodeStep, Submission | SubmitError | ClientError]":
        """See `NodeSource.jobs`."""
        found: dict[NodeStep, Submission | SubmitError | ClientError] = {}
        for step in steps:
            try:
                found[step] = self._submission(step)
            except DocumentRefused as error:
                found[step] = ClientError(error.faults[0].sentence)
        return found

    def _submission(self, step: NodeStep) -> "Submission":
        from kettle.submit import Submission

        made = self._ordered.submission(step.node, self._common.workflow)
        place = self._inputs(self._ordered.nodes.place(step.node))
        ad: Ad = {**made.ad, **attributes_of(self._common, step), "Iwd": str(place)}
        return Submission(ad=ad, columns=[], rows=[[]])

    def _inputs(self, place: int) -> Path:
        """Where the input files are of all instances of a job of the document."""
        return self._common.directory / "inputs" / str(place)


def _write(place: Path, inputs: "list[InputFile]") -> None:
    place.mkdir(parents=True, exist_ok=True)
    for file in inputs:
        path = place / posixpath.basename(file.filename)
        path.write_bytes(file.content)
        path.chmod(_EXECUTABLE if file.executable else _PLAIN)
