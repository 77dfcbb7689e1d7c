"""Cycles, levels and the critical path, against slow and plain ways to find them."""

from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kettle.dag import graph

from .dag_files import dag_of, pairs

Lines = list[tuple[list[int], list[int]]]

groups = st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True)
lines = st.lists(st.tuples(groups, groups), max_size=6)


def text(said: Lines, count: int = 8) -> str:
    jobs = "".join(f"JOB n{index} x.sub\n" for index in range(count))
    return jobs + "".join(
        f"PARENT {' '.join(f'n{each}' for each in parents)} CHILD {' '.join(f'n{each}' for each in children)}\n"
        for parents, children in said
    )


def forward(said: Lines) -> Lines:
    """These lines, with parents that are always smaller than children."""
    found = [([p for p in parents if p < max(children)], children) for parents, children in said]
    return [(parents, [c for c in children if c > max(parents)]) for parents, children in found if parents]


def chains(edges: set[tuple[str, str]], name: str) -> Iterator[list[str]]:
    """Every way from a node to its end."""
    following = [child for parent, child in edges if parent == name]
    if not following:
        yield [name]
    for child in following:
        for chain in chains(edges, child):
            yield [name, *chain]


@given(lines)
def test_edges(said: Lines) -> None:
    """Through joins each child of a line waits for each parent of it, and for nobody else."""
    expected = {
        (f"n{parent}", f"n{child}") for parents, children in said for parent in parents for child in children
    }

    assert set(pairs(dag_of(text(said)))) == expected


@given(lines)
def test_cycles(said: Lines) -> None:
    """What is told as a cycle is one, and if none is told, all nodes can be put in order."""
    dag = dag_of(text(said))
    edges = set(pairs(dag))
    found = list(graph.cycles(dag))

    for cycle in found:
        names = [dag.nodes[index].name for index in cycle]
        assert set(zip(names, [*names[1:], names[0]], strict=True)) <= edges
    reached = set(edges)
    for _ in dag.nodes:
        reached |= {(first, last) for first, middle in reached for other, last in edges if middle == other}
    assert bool(found) == any(first == last for first, last in reached)


@given(lines, st.lists(st.integers(0, 9), min_size=8, max_size=8))
def test_levels_and_critical_path(said: Lines, seconds: list[int]) -> None:
    """Height is the longest chain, and the critical path the one that takes longest."""
    dag = dag_of(text(forward(said)))
    edges = set(pairs(dag))
    every = [chain for node in dag.nodes for chain in chains(edges, node.name)]
    cost = {f"n{index}": each for index, each in enumerate(seconds)}
    path = graph.critical_path(dag, dict(enumerate(map(float, seconds))))
    names = [dag.nodes[index].name for index in path.nodes]

    assert graph.levels(dag).height == max(len(chain) for chain in every)
    assert sum(graph.levels(dag).widths) == len(dag.nodes)
    assert path.seconds == max(sum(cost[name] for name in chain) for chain in every)
    assert sum(cost[name] for name in names) == path.seconds
    assert set(pairwise(names)) <= edges


def test_diamond() -> None:
    """A diamond is three high and two wide; nodes beside the graph are not counted."""
    dag = dag_of("JOB A x\nJOB B x\nJOB C x\nJOB D x\nFINAL F x\nPARENT A CHILD B C\nPARENT B C CHILD D\n")
    levels = graph.levels(dag)

    assert (levels.height, levels.width, levels.of) == (3, 2, (1, 2, 2, 3, 0))
    assert list(graph.cycles(dag)) == []


def test_join_is_no_level() -> None:
    """Two nodes before two nodes are two levels."""
    levels = graph.levels(dag_of("JOB A x\nJOB B x\nJOB C x\nJOB D x\nPARENT A B CHILD C D\n"))

    assert levels.widths == (2, 2)


def test_cycle() -> None:
    """A cycle is told in the order of its nodes; those behind it have no level."""
    dag = dag_of(
        "JOB A x\nJOB B x\nJOB C x\nJOB D x\nPARENT A CHILD B\nPARENT B CHILD C\nPARENT C CHILD A D\n"
    )
    (cycle,) = graph.cycles(dag)

    start = cycle.index(0)
    assert [dag.nodes[each].name for each in (*cycle[start:], *cycle[:start])] == ["A", "B", "C"]
    assert graph.levels(dag).of == (0, 0, 0, 0)


def test_node_that_waits_for_itself() -> None:
    """A node that is its own parent is a cycle of one."""
    assert list(graph.cycles(dag_of("JOB A x\nPARENT A CHILD A\n"))) == [(0,)]
