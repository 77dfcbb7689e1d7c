"""
The jobs of a workflow, one by one: those of factories with their parameters, made when they are asked for.

Each has a number, from 0 on: jobs in the order of the document, instances in that of their factory.
"""

from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate

import msgspec
from msgspec.structs import replace

from kettle.prominence import factories
from kettle_wire.prominence.factories import Factory, RandomSample
from kettle_wire.prominence.job import Job, Policies
from kettle_wire.prominence.workflow import Workflow


class WorkflowNode(msgspec.Struct, frozen=True):
    """One job of a workflow that is submitted."""

    job: Job
    """As the document has it, but for its name, which is that of the node, and the placement, which may be the workflow's."""
    index: int | None
    """Which instance of its factory it is; None: it has none."""
    parameters: dict[str, str]


class WorkflowNodes:
    """All jobs of a workflow that was read; each is found without making the others."""

    def __init__(self, workflow: Workflow) -> None:
        self.workflow = workflow
        self._factories = {name: factory for factory in workflow.factories for name in factory.jobs}
        self.counts = [self._count(job) for job in workflow.jobs]
        """Instances of each job of the document."""
        self._ends = list(accumulate(self.counts))

    def __len__(self) -> int:
        return self._ends[-1]

    def __getitem__(self, number: int) -> WorkflowNode:
        place = self.place(number)
        return self._node(place, number - self._ends[place] + self.counts[place])

    def __iter__(self) -> Iterator[WorkflowNode]:
        return map(self.__getitem__, range(len(self)))

    def place(self, number: int) -> int:
        """Of which job of the document a node is, by its place there."""
        if not 0 <= number < len(self):
            raise IndexError(f"the workflow has {len(self)} jobs, and no {number}")
        return bisect_right(self._ends, number)

    def numbers(self, place: int) -> range:
        """The numbers of the nodes of one job of the document."""
        return range(self._ends[place] - self.counts[place], self._ends[place])

    def _node(self, place: int, index: int) -> WorkflowNode:
        job = self.workflow.jobs[place]
        factory = self._factories.get(job.name)
        parts = [self.workflow.name, job.name, *([] if factory is None else [str(index)])]
        name = "/".join(part for part in parts if part)
        named = replace(job, name=name, policies=self._policies(job.policies))
        if factory is None:
            return WorkflowNode(named, None, {})
        return WorkflowNode(named, index, factories.parameters_of(factory, index))

    def _policies(self, own: Policies) -> Policies:
        """What the workflow says of all its jobs is in the place of what one says of itself."""
        return replace(own, placement=self.workflow.policies.placement or own.placement)

    def _count(self, job: Job) -> int:
        factory = self._factories.get(job.name)
        return 1 if factory is None else factories.count(factory)


def seeded(workflow: Workflow, seeds: Iterator[int]) -> Workflow:
    """
    The workflow with a seed for each random sample that has none: what is recorded, so that the same values are drawn again.
    """

    def with_seed(factory: Factory) -> Factory:
        if isinstance(factory, RandomSample) and factory.seed is None:
            return replace(factory, seed=next(seeds))
        return factory

    return replace(workflow, factories=[with_seed(factory) for factory in workflow.factories])
