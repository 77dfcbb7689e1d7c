"""
A workflow is looked at without being run: counts, height, width, critical path, and what may not be meant so.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Final

from msgspec.structs import replace

from kettle.prominence.carried_out import not_carried_out
from kettle.prominence.factories import text_of_fraction
from kettle.prominence.faults import below
from kettle.prominence.graph import JobGraph
from kettle.prominence.nodes import WorkflowNodes
from kettle.prominence.workflow_documents import graph_of
from kettle_wire.prominence.dry_run import DryRun
from kettle_wire.prominence.factories import ParameterSweep, RandomSample, Sweep
from kettle_wire.prominence.faults import Fault
from kettle_wire.prominence.job import Placement
from kettle_wire.prominence.workflow import Workflow

_SECONDS_PER_MINUTE: Final = 60.0


def dry_run(workflow: Workflow) -> DryRun:
    """What a workflow that was read would be; its jobs are taken to need all of their walltime."""
    shape = measured(
        [job.name for job in workflow.jobs],
        WorkflowNodes(workflow).counts,
        graph_of(workflow),
        [job.resources.walltime * _SECONDS_PER_MINUTE for job in workflow.jobs],
    )
    return replace(shape, name=workflow.name, is_limit=True, warnings=list(_warnings(workflow)))


def measured(jobs: Sequence[str], counts: Sequence[int], graph: JobGraph, seconds: Sequence[float]) -> DryRun:
    """
    The measures of a graph without cycles: of its jobs the names, how often each is made, and how long it took.
    """
    levels = graph.levels()
    widths = [0] * (max(levels, default=-1) + 1)
    for level, count in zip(levels, counts, strict=True):
        widths[level] += count
    path = graph.critical_path(seconds)
    return DryRun(
        name="",
        jobs=len(jobs),
        nodes=sum(counts),
        height=len(widths),
        width=max(widths, default=0),
        critical_path=[jobs[job] for job in path],
        seconds=sum(seconds[job] for job in path),
        is_limit=False,
    )


def _warnings(workflow: Workflow) -> Iterator[Fault]:
    """What is accepted, and has another effect than one may think, or none."""
    for number, job in enumerate(workflow.jobs):
        where = below("", "jobs", number)
        yield from not_carried_out(job, where)
        if job.constraints:
            yield Fault(below(where, "constraints"), "constraints have no effect: write policies.placement")
        if job.policies.preemptible:
            yield Fault(below(where, "policies", "preemptible"), "preemptible has no effect")
        if workflow.policies.placement and job.policies.placement != Placement():
            sentence = "the placement of the workflow is in the place of this job's"
            yield Fault(below(where, "policies", "placement"), sentence)
    for number, factory in enumerate(workflow.factories):
        where = below("", "factories", number)
        if isinstance(factory, RandomSample) and factory.seed is None:
            yield Fault(
                where,
                "a seed is chosen at submission, and recorded: give seed for values that are known before",
            )
        for place, sweep in enumerate(factory.parameters if isinstance(factory, ParameterSweep) else []):
            if last := _missed_end(sweep):
                sentence = f"no whole number of steps leads to end {sweep.end}: the last value is {last}"
                yield Fault(below(where, "parameters", place, "end"), sentence)


def _missed_end(sweep: Sweep) -> str:
    """The last value of a sweep that does not reach its end; empty: it does."""
    if sweep.step is None:
        return ""
    steps = (Fraction(sweep.end) - Fraction(sweep.start)) // Fraction(sweep.step)
    last = Fraction(sweep.start) + steps * Fraction(sweep.step)
    return "" if last == sweep.end else text_of_fraction(last)
