"""
Documents of PROMINENCE as workloads: jobs and workflows, with run times that are given, or their walltimes.
"""

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np

from kettle.prominence.carried_out import node_range
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.job_ads import megabytes
from kettle.prominence.job_documents import parsed, read_job
from kettle.prominence.nodes import WorkflowNodes
from kettle.prominence.workflow_documents import graph_of, is_workflow, read_workflow
from kettle.prominence.yaml_documents import YamlMissingError, json_of
from kettle_services.simulator.workloads.dependencies import Dependencies, none_of
from kettle_services.simulator.workloads.distributions import Distribution, Randomness
from kettle_services.simulator.workloads.workflows import ONCE, WorkflowError
from kettle_services.simulator.workloads.workload import Column, Workload
from kettle_wire.prominence.job import Job, Resources

_US: Final = 1e6
_MINUTE: Final = 60_000_000
_TOLD: Final = 10


def read_prominence(
    path: Path,
    *,
    duration: Distribution | None = None,
    at: Column = ONCE,
    seed: int = 0,
    user: str = "user",
    grid: bool = False,
) -> Workload:
    """
    The job of a document, or all jobs of a workflow, those of factories each; of a range of CPUs a job has the least.

    Durations (seconds) are drawn; without a distribution each job takes its walltime, which is its limit in any case.
    It is submitted at each of the times of `at`, in microseconds.

    Raises:
        WorkflowError: it is no such document.
        OSError: it cannot be read.
    """
    try:
        jobs, waits = _jobs(path)
    except DocumentRefused as refusal:
        told = "\n".join(f"{path}: {fault.pointer}: {fault.sentence}" for fault in refusal.faults[:_TOLD])
        raise WorkflowError(told) from refusal
    except YamlMissingError as error:
        raise WorkflowError(f"{path}: {error}") from error
    limits = [job.resources.walltime * _MINUTE for job in jobs]
    if duration is None:
        work = np.tile(np.array(limits, dtype=np.int64), len(at))
    else:
        work = np.rint(duration.draw(Randomness(seed, "durations"), len(jobs) * len(at)) * _US).astype(
            np.int64
        )
    return Workload(
        submitted=np.zeros(len(jobs), dtype=np.int64),
        work=0,
        cores=[_cores(job.resources) for job in jobs],
        memory=[_memory(job.resources) for job in jobs],
        nodes=[max(1, node_range(job.resources)[0]) for job in jobs],
        limit=limits,
        users=(user,),
        grid=grid,
        waits=waits,
    ).repeated(at, work)


def _jobs(path: Path) -> tuple[list[Job], Dependencies]:
    text = path.read_bytes()
    if path.suffix.lower() in (".yaml", ".yml"):
        text = json_of(text)
    if not is_workflow(parsed(text)):
        return [read_job(text)], none_of(1)
    workflow = read_workflow(text)
    nodes, graph = WorkflowNodes(workflow), graph_of(workflow)

    def edges() -> Iterator[tuple[int, int]]:
        for parent, children in enumerate(graph.children):
            for child in children:
                yield from product(nodes.numbers(parent), nodes.numbers(child))

    return [node.job for node in nodes], Dependencies.of(len(nodes), edges())


def _cores(resources: Resources) -> int:
    return resources.cpus or min(resources.cpus_range or resources.cpus_options or [1])


def _memory(resources: Resources) -> int:
    """MiB, as the job would ask for."""
    if resources.memory is not None:
        return megabytes(resources.memory)
    return megabytes((resources.memory_per_cpu or 0) * _cores(resources))
