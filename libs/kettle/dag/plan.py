"""What the service that decides about a workflow needs of a DAG."""

from collections.abc import Callable
from typing import TypeVar

from kettle.dag.structure import Dag, Node
from kettle_wire.workflows import AbortRule, Deferral, Plan, Retries, Tolerance

Rule = TypeVar("Rule")


def plan_of(dag: Dag, urgency: bytes = b"") -> Plan:
    """The graph of a DAG and the rules of its nodes, by the same indices; `urgency`: see `Plan`."""
    nodes = dag.nodes
    return Plan(
        names=[node.name for node in nodes],
        joins=dag.edges.joins,
        starts=dag.edges.starts,
        ends=dag.edges.ends,
        weak=dag.edges.weak,
        noop=[index for index, node in enumerate(nodes) if node.is_noop],
        done=[index for index, node in enumerate(nodes) if node.is_done],
        final=dag.final,
        provisioner=dag.provisioner,
        services=list(dag.services),
        priorities=_table(dag, lambda node: node.priority or None),
        retries=_table(dag, lambda node: Retries(node.retries, node.unless_exit) if node.retries else None),
        pre={index: _deferral(node, "pre") for index, node in enumerate(nodes) if node.pre is not None},
        post={index: _deferral(node, "post") for index, node in enumerate(nodes) if node.post is not None},
        hold=[index for index, node in enumerate(nodes) if node.hold is not None],
        pre_skip=_table(dag, lambda node: node.pre_skip),
        aborts=_table(
            dag, lambda node: AbortRule(node.abort.value, node.abort.exit_code) if node.abort else None
        ),
        tolerances=_table(dag, _tolerance),
        categories=_table(dag, lambda node: node.category),
        category_limits=dict(dag.throttles),
        save_points=[index for index, node in enumerate(nodes) if node.save_point is not None],
        urgency=urgency,
    )


def _table(dag: Dag, rule: Callable[[Node], Rule | None]) -> dict[int, Rule]:
    """What a rule says of the nodes for which there is one."""
    found = ((index, rule(node)) for index, node in enumerate(dag.nodes))
    return {index: said for index, said in found if said is not None}


def _deferral(node: Node, part: str) -> Deferral | None:
    script = node.pre if part == "pre" else node.post
    if script is None or script.defer_status is None:
        return None
    return Deferral(script.defer_status, script.defer_seconds)


def _tolerance(node: Node) -> Tolerance | None:
    rule = node.tolerance
    if rule is None:
        return None
    return Tolerance(rule.amount, percent=rule.is_percent, wait=rule.fail_fast is False)
