"""Which node is how urgent, against the longest of all chains behind it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.dag.node_order import estimates, packed, urgency
from kettle.dag.node_runs import NodeRun
from kettle.dag.plan import plan_of

from .dag_files import dag_of, pairs
from .test_graph import chains, forward, lines, text


@given(lines, st.lists(st.integers(0, 5), min_size=8, max_size=8))
def test_a_node_is_as_urgent_as_the_longest_chain_behind_it(
    said: list[tuple[list[int], list[int]]], seconds: list[int]
) -> None:
    """
    Two nodes compare as the longest of their chains do, by seconds, and by numbers of nodes where none are
    known.
    """
    dag = dag_of(text(forward(said)))
    edges = set(pairs(dag))
    for known in (dict(enumerate(map(float, seconds))), {}):
        longest = [
            max(sum(known.get(int(name[1:]), 1.0) for name in chain) for chain in chains(edges, node.name))
            for node in dag.nodes
        ]
        found = urgency(dag, known)
        assert sorted(set(found)) == list(range(len(set(longest))))
        for one in range(8):
            for two in range(8):
                assert (found[one] < found[two]) == (longest[one] < longest[two])


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ([], {}),
        ([{"A": NodeRun()}], {}),
        ([{"A": NodeRun(seconds=4.0)}], {0: 4.0, 1: 4.0, 2: 4.0, 3: 0.0}),
        ([{"A": NodeRun(seconds=4.0), "C": NodeRun(seconds=10.0)}], {0: 4.0, 1: 4.0, 2: 10.0, 3: 0.0}),
        ([{"A": NodeRun(seconds=4.0)}, {"A": NodeRun(seconds=9.0)}], {0: 4.0, 1: 4.0, 2: 4.0, 3: 0.0}),
        ([{"C": NodeRun(seconds=2.0)}, {"A": NodeRun(seconds=9.0)}], {0: 9.0, 1: 9.0, 2: 2.0, 3: 0.0}),
    ],
)
def test_times_come_from_earlier_runs(runs: list[dict[str, NodeRun]], expected: dict[int, float]) -> None:
    """
    The newest run that has a node counts; a new node is like others of its submit file; a NOOP node takes no
    time.
    """
    dag = dag_of("JOB A x.sub\nJOB B x.sub\nJOB C y.sub\nJOB D x.sub NOOP\n")
    assert expected == estimates(dag, runs)


def test_a_plan_has_it_by_node() -> None:
    """The longer chain is more urgent; a FINAL node is not in any."""
    dag = dag_of("JOB A x\nJOB B x\nJOB C x\nPARENT B CHILD C\nFINAL F x\n")
    found = urgency(dag, {})
    assert [1, 2, 1, 0] == found
    assert b"".join(each.to_bytes(4, "little") for each in found) == plan_of(dag, packed(found)).urgency
