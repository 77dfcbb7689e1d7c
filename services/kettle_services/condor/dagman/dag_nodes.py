"""The jobs of a DAG: those of its nodes, and its scripts."""

from typing import Final

from kettle.dag.files.progress import Progress
from kettle_services.condor.dagman.macros import NodeSoFar
from kettle_services.condor.dagman.node_jobs import NodesInCommon, node_submission
from kettle_services.condor.dagman.node_source import NodeJobs
from kettle_services.condor.dagman.scripts import script_submission
from kettle_wire.codes import NodePart
from kettle_wire.events.workflow import NodeStep


class DagNodes:
    """A `NodeSource`."""

    def __init__(self, common: NodesInCommon, *, sent: bool = False) -> None:
        """`sent`: the files of the DAG were sent to the access point, so those of its nodes are, too."""
        self._common = common
        self._sent = sent
        self.workflow: Final = common.workflow
        self.batch: Final = common.batch

    def jobs(self, step: NodeStep, progress: Progress, so_far: NodeSoFar) -> NodeJobs:
        """See `NodeSource.jobs`."""
        if step.part != NodePart.JOB:
            return NodeJobs(script_submission(self._common, step, progress, so_far))
        failed, status = progress.counts.failed, int(progress.dag_status)
        return NodeJobs(node_submission(self._common, step, failed=failed, status=status), self._sent)
