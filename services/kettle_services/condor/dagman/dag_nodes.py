"""The jobs of a DAG: those of its nodes, and its scripts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kettle.client.errors import ClientError
from kettle.dag.files.progress import Progress
from kettle.submit.errors import SubmitError
from kettle_services.condor.dagman.macros import NodeSoFar
from kettle_services.condor.dagman.node_jobs import NodesInCommon, node_submissions
from kettle_services.condor.dagman.scripts import script_submission
from kettle_wire.codes import NodePart
from kettle_wire.events.workflow import NodeStep

if TYPE_CHECKING:
    from kettle.submit import Submission


class DagNodes:
    """A `NodeSource`."""

    def __init__(self, common: NodesInCommon, *, sent: bool = False) -> None:
        """`sent`: see `NodeSource.sent`; then those of the nodes are sent, too."""
        self._common = common
        self._above = common.dag.edges.parents() if sent else None
        self.sent: Final = sent
        self.spools: Final = sent
        self.workflow: Final = common.workflow
        self.batch: Final = common.batch

    def parents(self, node: int) -> Sequence[int]:
        """See `NodeSource.parents`."""
        return [] if self._above is None else list(self._above.nodes_of(node))

    def jobs(
        self, steps: Sequence[NodeStep], progress: Progress, known: Mapping[int, NodeSoFar]
    ) -> "dict[NodeStep, Submission | SubmitError | ClientError]":
        """See `NodeSource.jobs`."""
        prepared = node_submissions(
            self._common,
            [step for step in steps if step.part == NodePart.JOB],
            failed=progress.counts.failed,
            status=int(progress.dag_status),
        )
        for step in steps:
            if step.part != NodePart.JOB:
                try:
                    prepared[step] = script_submission(self._common, step, progress, known[step.node])
                except (SubmitError, ClientError) as error:
                    prepared[step] = error
        return prepared
