"""Workflows as workloads: instances of WfFormat with their recorded run times, and DAG files with run times that are given."""

import math
from pathlib import Path
from typing import Final

import numpy as np

from kettle.dag.building.parser import parse
from kettle.dag.disk import reader
from kettle.dag.faults import DagError
from kettle.prominence.faults import DocumentRefused
from kettle.prominence.graph import JobGraph
from kettle.prominence.wfformat import executions, graph_of, read_instance
from kettle_services.simulator.workloads.dependencies import Dependencies
from kettle_services.simulator.workloads.distributions import Distribution, Randomness
from kettle_services.simulator.workloads.workload import Column, Workload

ONCE: Final = np.zeros(1, dtype=np.int64)
_US: Final = 1e6
_MIB: Final = 1 << 20
_TOLD: Final = 10


class WorkflowError(ValueError):
    """The file is no workflow; the message says where and why."""


def read_wfformat(path: Path, *, at: Column = ONCE, user: str = "user", grid: bool = False) -> Workload:
    """
    The tasks of an instance of WfFormat 1.4 to 1.6 as jobs that took as long as was recorded.

    What its files weigh goes over the network, from where all ways meet to the host of the job and back.
    The workflow is submitted at each of the times of `at`, in microseconds.

    Raises:
        WorkflowError: it is none, or no run times were recorded.
        OSError: it cannot be read.
    """
    try:
        instance = read_instance(path.read_bytes())
    except DocumentRefused as refusal:
        told = "\n".join(f"{path}: {fault.pointer}: {fault.sentence}" for fault in refusal.faults[:_TOLD])
        raise WorkflowError(told) from refusal
    tasks, ran = instance.workflow.specification.tasks, executions(instance)
    missing = [task.id for task in tasks if task.id not in ran]
    if missing:
        raise WorkflowError(
            f"{path}: of {len(missing)} tasks, {missing[0]} the first, it is not recorded how long they ran"
        )
    took = [ran[task.id] for task in tasks]
    sizes = {file.id: int(file.size_in_bytes) for file in instance.workflow.specification.files}
    return Workload(
        submitted=np.zeros(len(tasks), dtype=np.int64),
        work=[round(each.runtime_in_seconds * _US) for each in took],
        cores=[max(1, math.ceil(each.core_count or 1)) for each in took],
        reads=[sum(sizes.get(file, 0) for file in set(task.input_files)) for task in tasks],
        writes=[sum(sizes.get(file, 0) for file in set(task.output_files)) for task in tasks],
        memory=[math.ceil((each.memory_in_bytes or 0) / _MIB) for each in took],
        users=(user,),
        grid=grid,
        waits=_dependencies(graph_of(instance)),
    ).repeated(at)


def read_dag(
    path: Path,
    *,
    duration: Distribution,
    at: Column = ONCE,
    seed: int = 0,
    cores: int = 1,
    memory: int = 0,
    user: str = "user",
    grid: bool = False,
) -> Workload:
    """
    The nodes of a DAG file as jobs, each with a duration (seconds) that is drawn; those that are done or NOOP take no time.

    The DAG is submitted at each of the times of `at`, in microseconds.

    Raises:
        WorkflowError: it is no DAG file.
        OSError: it cannot be read.
    """
    path.stat()
    try:
        dag = parse([path.name], reader(path.parent))
    except DagError as error:
        raise WorkflowError(f"{path.parent}/{error}") from error
    nodes = [index for index, node in enumerate(dag.nodes) if node.is_ordinary]
    place = {node: number for number, node in enumerate(nodes)}
    work = duration.draw(Randomness(seed, "durations"), len(nodes) * len(at)) * _US
    timeless = [dag.nodes[node].is_noop or dag.nodes[node].is_done for node in nodes]
    children = dag.edges.children()
    edges = (
        (place[node], place[child]) for node in nodes for child in children.nodes_of(node) if child in place
    )
    return Workload(
        submitted=np.zeros(len(nodes), dtype=np.int64),
        work=0,
        cores=cores,
        memory=memory,
        users=(user,),
        grid=grid,
        waits=Dependencies.of(len(nodes), edges),
    ).repeated(at, np.where(np.tile(timeless, len(at)), 0, np.rint(work)))


def _dependencies(graph: JobGraph) -> Dependencies:
    edges = ((parent, child) for parent, children in enumerate(graph.children) for child in children)
    return Dependencies.of(len(graph.children), edges)
