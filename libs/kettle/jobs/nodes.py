"""
Jobs of several nodes: each node has a slot of its own, all run at the same time, and one exit decides for all.

Pure. A job of the parallel universe has as many nodes as its `MaxHosts` says, or fewer, but not less than `MinHosts`; every other job
has one.
"""

from collections.abc import Mapping
from typing import Final

from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.codes import Universe

MOST_NODES: Final = 1000
"""Nodes of one job: what is said of all of them has to fit into one message."""
PLACEHOLDER: Final = "#pArAlLeLnOdE#"
"""What stands in an ad for the number of the node, as HTCondor writes it: each node has its own there."""
NUMBER: Final = "Node"
"""The attribute of the ad of a node that has its number, from 0 on."""
POLICY: Final = "ParallelShutdownPolicy"
WAIT_FOR_ALL: Final = "WAIT_FOR_ALL"
"""The policy of a job that has ended when all of its nodes have; by default it ends with node 0."""
HOSTS: Final = "ParallelHosts"
"""The attribute of the ad of a node that has the hosts of all nodes, in their order, one by one with spaces between."""
GROUP: Final = "ParallelSchedulingGroup"
"""The attribute of machines, whose value machines that are near each other share."""
SAME_GROUP: Final = "WantParallelSchedulingGroups"
"""Whether all nodes of a job are to be on machines of the same group."""


def node_count(ad: Mapping[str, Scalar]) -> int:
    """How many slots a job needs at the same time."""
    return node_range(ad)[0]


def node_range(ad: Mapping[str, Scalar]) -> tuple[int, int]:
    """How many slots a job needs at the same time, and how many it takes if there are more."""
    least, most = ad.get("MinHosts"), ad.get("MaxHosts")
    if ad.get("JobUniverse") != Universe.PARALLEL or not isinstance(most, int) or not 1 <= most <= MOST_NODES:
        return 1, 1
    return (least if isinstance(least, int) and 1 <= least <= most else most), most


def is_parallel(ad: Mapping[str, Scalar]) -> bool:
    """Whether a job is of the parallel universe, be it of one node."""
    return ad.get("JobUniverse") == Universe.PARALLEL


def of_node(ad: Ad, number: int) -> Ad:
    """The ad of a job as one of its nodes has it."""
    return {name: _numbered(value, str(number)) for name, value in ad.items()} | {NUMBER: number}


def _numbered(value: Scalar, number: str) -> Scalar:
    if isinstance(value, str):
        return value.replace(PLACEHOLDER, number)
    if isinstance(value, Expr) and PLACEHOLDER in value.expr:
        return Expr(value.expr.replace(PLACEHOLDER, number))
    return value


def waits_for_all(ad: Mapping[str, Scalar]) -> bool:
    """Whether the job has ended only when each of its nodes has."""
    policy = ad.get(POLICY)
    return isinstance(policy, str) and policy.upper() == WAIT_FOR_ALL
