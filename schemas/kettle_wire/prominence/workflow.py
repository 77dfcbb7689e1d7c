"""The document of a workflow: jobs, which of them wait for which, and which are made many times."""

from typing import Annotated, Literal

import msgspec

from kettle_wire.prominence.factories import Factory, OldFactory
from kettle_wire.prominence.job import Job, Placement
from kettle_wire.prominence.values import Document, LabelName, LabelValue, Name

Times = Annotated[int, msgspec.Meta(ge=1, le=10)]


class Dependency(Document, frozen=True):
    """Each of the children waits for all of the parents: the older form."""

    parents: list[str]
    children: list[str]


class WorkflowPolicies(Document, frozen=True):
    """How the workflow is treated."""

    maximum_retries: Times | None = None
    """How often each job runs again if it fails."""
    maximum_reruns: Times | None = None
    """How often what failed is run again at the end."""
    placement: Placement | None = None
    """In the place of each job's own."""
    leave_in_queue: bool = False


class WorkflowNotification(Document, frozen=True):
    """Mail when the workflow has ended."""

    event: Literal["workflowFinished"]
    type: Literal["email"]


class Workflow(Document, frozen=True):
    """A workflow, as it is submitted."""

    jobs: Annotated[list[Job], msgspec.Meta(min_length=1)]
    """Each has a name of its own."""
    name: Name = ""
    labels: dict[LabelName, LabelValue] = {}
    dependencies: dict[str, list[str]] | list[Dependency] = {}
    """Parent -> its children."""
    factories: list[Factory] = []
    """At most one for each job."""
    factory: OldFactory | None = None
    policies: WorkflowPolicies = WorkflowPolicies()
    notifications: list[WorkflowNotification] = []
