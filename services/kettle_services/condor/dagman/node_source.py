"""Where the jobs of a workflow's nodes come from: its hands submit them without knowing."""

from typing import TYPE_CHECKING, Protocol

import msgspec

from kettle.dag.files.progress import Progress
from kettle_services.condor.dagman.macros import NodeSoFar
from kettle_wire.events.workflow import NodeStep

if TYPE_CHECKING:
    from kettle.submit import Submission

STEP = "KettleWorkflowStep"
"""The attribute by which the dagman service knows the jobs of its nodes."""


class NodeJobs(msgspec.Struct, frozen=True):
    """What is submitted for a step."""

    submission: "Submission"
    spool: bool = False
    """Whether the access point gets their files with them; if not, it uses those that are there."""


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

    def jobs(self, step: NodeStep, progress: Progress, so_far: NodeSoFar) -> NodeJobs:
        """
        The jobs of a step, from a thread: files are read.

        Raises:
            SubmitError, ClientError: they cannot be submitted, and why.
        """
        ...


def step_text(workflow: int, step: NodeStep) -> str:
    """How a job says for which step it was submitted."""
    return f"{workflow}/{step.node}/{step.attempt}/{step.part}/{step.run}"
