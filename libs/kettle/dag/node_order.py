"""
Which of several ready nodes begins first, where a DAG is ordered by its critical path: the one behind which the most is left to do.

Pure: O(nodes + edges) for the times, and one sort.
"""

from array import array
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from kettle.dag.graph import remaining
from kettle.dag.node_runs import NodeRun
from kettle.dag.structure import Dag


def estimates(dag: Dag, runs: Iterable[Mapping[str, NodeRun]]) -> dict[int, float]:
    """
    Seconds that nodes take, by earlier runs of the DAG, the newest first.

    A node that never ran takes as long as those with its submit file on average, else as all on average; nothing is known
    where no node has run.
    """
    known: dict[int, float] = {}
    for run in runs:
        for index, node in enumerate(dag.nodes):
            before = run.get(node.name)
            if index not in known and before is not None and before.seconds is not None:
                known[index] = before.seconds
    if not known:
        return {}
    by_submit: dict[tuple[str, str], list[float]] = defaultdict(list)
    for index, seconds in known.items():
        by_submit[_submit(dag, index)].append(seconds)
    means = {submit: fmean(each) for submit, each in by_submit.items()}
    usual = fmean(known.values())
    return {
        index: known[index] if index in known else means.get(_submit(dag, index), usual)
        for index in range(len(dag.nodes))
    } | {index: 0.0 for index, node in enumerate(dag.nodes) if node.is_noop}


def _submit(dag: Dag, index: int) -> tuple[str, str]:
    node = dag.nodes[index]
    return node.directory, node.submit or node.name


def urgency(dag: Dag, seconds: Mapping[int, float]) -> list[int]:
    """
    For each node how urgent it is: 0 for those behind which the least is left, one more for each longer time; equal ones are equal.

    `seconds`: what nodes take; where that is empty, their number counts.
    """
    left = remaining(dag, seconds)[: len(dag.nodes)]
    ranks = {each: rank for rank, each in enumerate(sorted(set(left)))}
    return [ranks[each] for each in left]


def packed(ranks: Sequence[int]) -> bytes:
    """As a plan has them: little-endian words of 32 bits."""
    return array("I", ranks).tobytes()
