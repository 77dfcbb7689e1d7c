"""Edges of a graph, few and very many."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.dag import edges
from kettle.dag.edges import EdgeCollector, Edges

NODES = 6
_SOME = st.lists(st.integers(0, NODES - 1), min_size=1, max_size=3)
_LINES = st.lists(st.tuples(_SOME, _SOME, st.booleans()), min_size=1, max_size=6)


def collected(lines: list[tuple[list[int], list[int], bool]]) -> Edges:
    collector = EdgeCollector()
    for parents, children, is_weak in lines:
        collector.connect(parents, children, is_weak=is_weak)
    return collector.edges(NODES)


@given(_LINES)
def test_very_many_edges_are_what_few_are(lines: list[tuple[list[int], list[int], bool]]) -> None:
    """They are made in another way: in either direction, with repeats, joins and weak ones."""
    few = collected(lines)
    above = few.parents()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(edges, "MANY", 1)
        many = collected(lines)
        assert few == many
        turned = many.parents()
    for vertex in range(few.vertices):
        assert above.of(vertex) == turned.of(vertex)
        assert above.weakness_of(vertex) == turned.weakness_of(vertex)


def test_the_process_of_a_dag_job_loads_nothing_for_very_many_edges() -> None:
    """There is one for each DAG, and for each DAG within."""
    read = "import sys, kettle_services.condor.dagman.process; sys.exit('numpy' in sys.modules)"
    assert 0 == subprocess.run([sys.executable, "-c", read], check=False).returncode
