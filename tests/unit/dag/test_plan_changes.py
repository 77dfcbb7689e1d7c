"""What of a DAG is different from the one with which its workflow has begun."""

import msgspec
import pytest

from kettle.dag.plan import plan_of
from kettle.dag.plan_changes import PlanChanges, plan_changes

from .dag_files import dag_of

BEFORE = """\
JOB A x.sub
JOB B x.sub
JOB C x.sub
JOB D x.sub
PARENT A B CHILD C D
CATEGORY A big
MAXJOBS big 2
"""


def found(now: str) -> PlanChanges:
    return plan_changes(plan_of(dag_of(BEFORE)), plan_of(dag_of(now)))


@pytest.mark.parametrize(
    ("now", "nodes", "order", "limits"),
    [
        (BEFORE.replace("JOB A", "# said once more\n\nJOB A"), "", False, False),
        (BEFORE.replace("x.sub", "y.sub") + 'VARS A x="1"\n', "", False, False),
        ("JOB E x.sub\n" + BEFORE, "E", True, False),
        (BEFORE.replace("JOB D x.sub\n", "").replace(" C D", " C"), "D", True, False),
        (BEFORE.replace("JOB A x.sub\nJOB B x.sub", "JOB B x.sub\nJOB A x.sub"), "", True, False),
        (BEFORE.replace("A B CHILD", "A CHILD"), "CD", False, False),
        (BEFORE.replace("PARENT A B CHILD C D", "PARENT A CHILD C D\nPARENT B CHILD C D"), "", False, False),
        (BEFORE + "RETRY B 3\n", "B", False, False),
        (BEFORE + "SCRIPT PRE B x.sh\n", "B", False, False),
        (BEFORE.replace("JOB B x.sub", "JOB B x.sub DONE"), "B", False, False),
        (BEFORE.replace("big 2", "big 3"), "", False, True),
        (BEFORE.replace("JOB D", "FINAL D").replace(" C D", " C"), "D", False, False),
    ],
)
def test_what_differs(now: str, nodes: str, order: bool, limits: bool) -> None:
    """
    By names: a node in front of others gives these other numbers, and does not change them; what is only read to run a node counts not.
    """
    assert (nodes, order, limits) == ("".join((is_now := found(now)).nodes), is_now.order, is_now.limits)
    assert bool(nodes or order or limits) == bool(is_now)


def test_urgency_is_no_difference() -> None:
    """It comes from how long nodes took, and is worked out each time."""
    plan = plan_of(dag_of(BEFORE))
    assert not plan_changes(plan, msgspec.structs.replace(plan, urgency=bytes(16)))
