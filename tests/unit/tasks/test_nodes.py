"""What the nodes of a job of several tasks do."""

import pytest

from kettle.tasks.nodes import on_node
from kettle.tasks.reading import TasksError
from kettle_wire.tasks import Artifact, Output, Task, TaskList

BASIC = Task(cmd=("a",), image="docker://x")
RANKS = Task(cmd=("b",), image="docker://y", type="mpich", env={"A": "1"})
LISTED = TaskList(
    tasks=(BASIC, RANKS, Task(cmd=("c",), image="docker://y", type="openmpi")),
    artifacts=(Artifact(url="http://h/x"),),
    outputs=(Output(name="y"),),
    retries=3,
    wall_time=5.0,
)


def test_node_0_does_all_and_the_others_hold_a_place_for_the_ranks() -> None:
    """These have all that is fetched, and neither results nor limits of their own: they end with node 0."""
    assert LISTED == on_node(LISTED, 0)
    assert TaskList(tasks=(RANKS,), artifacts=LISTED.artifacts) == on_node(LISTED, 2)


@pytest.mark.parametrize("number", [0, 1])
@pytest.mark.parametrize(
    ("tasks", "why"),
    [((BASIC,), "no task of type openmpi"), ((RANKS, Task(cmd=("c",), type="mpich")), "docker://y and none")],
)
def test_nodes_that_have_nothing_to_wait_for_are_refused(
    tasks: tuple[Task, ...], why: str, number: int
) -> None:
    """On each of them, so that the job does not run in part."""
    with pytest.raises(TasksError, match=why):
        on_node(TaskList(tasks=tasks), number)
