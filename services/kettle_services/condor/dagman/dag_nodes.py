"""The jobs of a DAG: those of its nodes, and its scripts."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from kettle.client.errors import ClientError
from kettle.dag.files.progress import Progress
from kettle.dag.structure import Dag, NodeKind
from kettle.submit.errors import SubmitError
from kettle_services.condor.dagman.kept_outputs import with_kept_outputs
from kettle_services.condor.dagman.macros import NodeSoFar
from kettle_services.condor.dagman.node_jobs import NodesInCommon, node_submissions
from kettle_services.condor.dagman.scripts import script_submission
from kettle_wire.codes import NodePart, Universe
from kettle_wire.events.workflow import NodeStep

if TYPE_CHECKING:
    from kettle.dag.edges import Adjacency
    from kettle.submit import Submission


RUNS_HERE: Final = (
    "would run on the access point with all rights of its owner's account, and the workflow came by a token, which does not give them: "
    "submit it with the account itself"
)
_UNIVERSE: Final = "jobuniverse"


class DagNodes:
    """A `NodeSource`."""

    def __init__(
        self, common: NodesInCommon, *, sent: bool = False, by_token: bool = False, keeps_at: str = ""
    ) -> None:
        """
        `sent`: see `NodeSource.sent`; then those of the nodes are sent, too. `by_token`: nothing of it runs on the access point.
        `keeps_at`: the name of the access point if results stay on machines for the nodes that come next; empty: none do.
        """
        self._keeps_at = keeps_at
        self._edges = (common.dag.edges.parents(), common.dag.edges.children()) if keeps_at else None
        self._by_token = by_token
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
        if self._edges is not None:
            prepared = {
                step: self._near_its_parents(step, each, progress, *self._edges)
                for step, each in prepared.items()
            }
        for step in steps:
            if step.part != NodePart.JOB:
                try:
                    prepared[step] = script_submission(self._common, step, progress, known[step.node])
                except (SubmitError, ClientError) as error:
                    prepared[step] = error
        return {step: _away(each) for step, each in prepared.items()} if self._by_token else prepared

    def _near_its_parents(
        self,
        step: NodeStep,
        made: "Submission | SubmitError | ClientError",
        progress: Progress,
        parents: "Adjacency",
        children: "Adjacency",
    ) -> "Submission | SubmitError | ClientError":
        if isinstance(made, Exception):
            return made
        there = progress.clusters
        return with_kept_outputs(
            made,
            schedd=self._keeps_at,
            parents=[there[node] for node in parents.nodes_of(step.node) if node in there],
            has_children=next(children.nodes_of(step.node), None) is not None,
        )


def refuse_what_runs_here(dag: Dag) -> None:
    """
    Raises ClientError for what of a DAG that came by a token would run on the access point, as far as that is seen beforehand.
    """
    for node in dag.nodes:
        if node.kind is NodeKind.SUBDAG or node.pre or node.post or node.hold:
            what = "the DAG within" if node.kind is NodeKind.SUBDAG else "the scripts of"
            raise ClientError(f"{what} node {node.name} {RUNS_HERE}")


def _away(made: "Submission | SubmitError | ClientError") -> "Submission | SubmitError | ClientError":
    """A submission whose jobs run elsewhere, else why it is none."""
    if isinstance(made, Exception):
        return made
    said = [value for name, value in made.ad.items() if name.lower() == _UNIVERSE]
    places = [place for place, name in enumerate(made.columns) if name.lower() == _UNIVERSE]
    said += [row[place] for place in places for row in made.rows]
    here = {Universe.LOCAL, Universe.SCHEDULER}
    return ClientError(f"a job of the local or scheduler universe {RUNS_HERE}") if here & {*said} else made
