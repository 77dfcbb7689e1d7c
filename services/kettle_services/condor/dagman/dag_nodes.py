"""The jobs of a DAG: those of its nodes, and its scripts."""

from collections.abc import Sequence
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
        """`sent`: see `NodeSource.sent`; then those of the nodes are sent, too."""
        self._common = common
        self._above = common.dag.edges.parents() if sent else None
        self.sent: Final = sent
        self.workflow: Final = common.workflow
        self.batch: Final = common.batch

    def parents(self, node: int) -> Sequence[int]:
        """See `NodeSource.parents`."""
        return [] if self._above is None else list(self._above.nodes_of(node))

    def jobs(self, step: NodeStep, progress: Progress, so_far: NodeSoFar) -> NodeJobs:
        """See `NodeSource.jobs`."""
        if step.part != NodePart.JOB:
            return NodeJobs(script_submission(self._common, step, progress, so_far))
        failed, status = progress.counts.failed, int(progress.dag_status)
        return NodeJobs(node_submission(self._common, step, failed=failed, status=status), self.sent)
