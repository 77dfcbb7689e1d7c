"""The jobs of a workflow of PROMINENCE, each made from its document when it is submitted."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

from kettle.client.errors import ClientError
from kettle.dag.files.progress import Progress
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.workflow_orders import OrderedWorkflow
from kettle_services.condor.dagman.macros import NodeSoFar
from kettle_services.condor.dagman.node_jobs import NodesInCommon, attributes_of
from kettle_services.condor.dagman.node_source import NodeJobs
from kettle_wire.events.workflow import NodeStep

if TYPE_CHECKING:
    from kettle_wire.ads.types import Ad
    from kettle_wire.prominence.job import InputFile

_EXECUTABLE: Final = 0o755
_PLAIN: Final = 0o644


class DocumentNodes:
    """A `NodeSource`."""

    def __init__(self, common: NodesInCommon, ordered: OrderedWorkflow) -> None:
        self._common = common
        self._ordered = ordered
        self.workflow: Final = common.workflow
        self.batch: Final = common.batch

    def jobs(self, step: NodeStep, _progress: Progress, _so_far: NodeSoFar) -> NodeJobs:
        """See `NodeSource.jobs`."""
        from kettle.submit import Submission

        try:
            made = self._ordered.submission(step.node, self._common.workflow)
        except DocumentRefused as error:
            raise ClientError(f"{error.faults[0].sentence}") from error
        place = self._common.directory / "inputs" / str(step.node)
        _write(place, made.inputs)
        ad: Ad = {**made.ad, **attributes_of(self._common, step), "Iwd": str(place)}
        return NodeJobs(Submission(ad=ad, columns=[], rows=[[]]), spool=True)


def _write(place: Path, inputs: "list[InputFile]") -> None:
    """The input files of a job, where they are sent from."""
    place.mkdir(parents=True, exist_ok=True)
    for file in inputs:
        path = place / file.filename
        path.write_bytes(file.content)
        path.chmod(_EXECUTABLE if file.executable else _PLAIN)
