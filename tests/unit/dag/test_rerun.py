"""What a new run of a DAG runs, against a walk over all chains."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kettle.dag.plan import plan_of
from kettle.dag.rerun import RerunError, rerun
from kettle_wire.codes import NodeState

from .dag_files import dag_of, pairs

DIAMOND = """\
JOB A x.sub
JOB B x.sub
JOB C x.sub
JOB D x.sub
PARENT A CHILD B C
PARENT B C CHILD D
FINAL F x.sub
"""
FAILED = {"A": NodeState.DONE, "B": NodeState.SKIPPED, "C": NodeState.FAILED, "D": NodeState.FUTILE}
ALL_DONE = dict.fromkeys("ABCDF", NodeState.DONE)


def ran(states: dict[str, NodeState], *, after: str = "", only: str = "", text: str = DIAMOND) -> str:
    """The names of the nodes that run."""
    plan = plan_of(dag_of(text))
    return "".join(plan.names[node] for node in rerun(plan, states, after=after, only=only).runs)


@pytest.mark.parametrize(
    ("states", "after", "only", "expected"),
    [
        (FAILED, "", "", "CDF"),
        (FAILED, "B", "", "BCDF"),
        (ALL_DONE, "", "", "F"),
        (ALL_DONE, "C", "", "CDF"),
        (ALL_DONE, "BC", "", "BCDF"),
        (ALL_DONE, "", "C", "CF"),
        (FAILED, "", "DA", "ADF"),
        ({}, "", "", "ABCDF"),
    ],
)
def test_what_runs_again(states: dict[str, NodeState], after: str, only: str, expected: str) -> None:
    """
    What has succeeded does not, unless somebody names it, or it descends from what is named; FINAL runs
    always.
    """
    assert expected == ran(states, after=after, only=only)


def test_nodes_that_are_passed_over_are_told() -> None:
    """Those that count as done because only others are wanted, and have never succeeded."""
    plan = plan_of(dag_of(DIAMOND))
    found = rerun(plan, FAILED, only=["D"])
    assert ["C"] == [plan.names[node] for node in found.assumed]
    assert () == rerun(plan, FAILED).assumed


def test_a_node_that_its_file_says_to_be_done_stays_so() -> None:
    """Naming it is refused with the reason; it is passed over where it only descends from one that runs."""
    text = DIAMOND.replace("JOB C x.sub", "JOB C x.sub DONE")
    assert "ABDF" == ran(ALL_DONE, after="A", text=text)
    with pytest.raises(RerunError, match="node C is marked as DONE in the DAG file"):
        ran(ALL_DONE, after="C", text=text)


@pytest.mark.parametrize(
    ("name", "sentence"), [("X", "has no node X"), ("F", "F is beside the graph"), ("a", "mean A")]
)
def test_nodes_that_cannot_be_named(name: str, sentence: str) -> None:
    """With the nearest name."""
    with pytest.raises(RerunError, match=sentence):
        ran(ALL_DONE, only=name)


groups = st.lists(st.integers(0, 7), min_size=1, max_size=3, unique=True)


@given(st.lists(st.tuples(groups, groups), max_size=6), st.integers(0, 7))
def test_descendants_run_again(said: list[tuple[list[int], list[int]]], first: int) -> None:
    """Through joins, along cycles, exactly those that a walk over the pairs reaches."""
    text = "".join(f"JOB n{each} x.sub\n" for each in range(8)) + "".join(
        f"PARENT {' '.join(f'n{p}' for p in parents)} CHILD {' '.join(f'n{c}' for c in children)}\n"
        for parents, children in said
    )
    dag = dag_of(text)
    reached = {f"n{first}"}
    for _ in range(8):
        reached |= {child for parent, child in pairs(dag) if parent in reached}
    plan = plan_of(dag)
    found = rerun(plan, dict.fromkeys(plan.names, NodeState.DONE), after=[f"n{first}"])
    assert reached == {plan.names[node] for node in found.runs}
    assert set(plan.names) - reached == {plan.names[node] for node in found.done}
