"""Where the jobs of a workflow's nodes come from: its hands submit them without knowing."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from kettle.dag.files.progress import Progress
from kettle_services.condor.dagman.macros import NodeSoFar
from kettle_wire.events.workflow import NodeStep

if TYPE_CHECKING:
    from kettle.client.errors import ClientError
    from kettle.submit import Submission
    from kettle.submit.errors import SubmitError

STEP: Final = "KettleWorkflowStep"
"""The attribute by which the dagman service knows the jobs of its nodes."""


class NodeSource(Protocol):
    """A DAG, or a document."""

    @property
    def workflow(self) -> int:
        """The cluster of the DAG job."""
        ...

    @property
    def batch(self) -> str:
        """The name of the workflow in the queue, which is that of its DAG job."""
        ...

    @property
    def spools(self) -> bool:
        """
        Whether the access point gets the files of nodes with their jobs; if not, it uses those that are there.
        """
        ...

    @property
    def sent(self) -> bool:
        """
        Whether the files were sent to the access point, so that the results of nodes are brought to where they are: those of its
        parents before a node is submitted, and all at the end.
        """
        ...

    def parents(self, node: int, /) -> Sequence[int]:
        """The nodes for which one waits, whose files its jobs may need."""
        ...

    def jobs(
        self, steps: Sequence[NodeStep], progress: Progress, known: Mapping[int, NodeSoFar], /
    ) -> "dict[NodeStep, Submission | SubmitError | ClientError]":
        """
        The jobs of steps, or why there are none, from a thread: files are read; `known`: by node what its POST script is told.
        """
        ...


def step_text(workflow: int, step: NodeStep) -> str:
    """How a job says for which step it was submitted."""
    return f"{workflow}/{step.node}/{step.attempt}/{step.part}/{step.run}"


def step_in(text: str) -> NodeStep:
    """Inverse of `step_text`, without the workflow."""
    return NodeStep(*map(int, text.split("/")[1:]))
