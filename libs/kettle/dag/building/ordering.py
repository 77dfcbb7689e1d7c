"""PARENT and CHILD, CONNECT and its pins: who waits for whom."""

from collections.abc import Iterable, Sequence

from kettle.dag.building.drafts import Drafts
from kettle.dag.building.lookup import node_called, splice_called
from kettle.dag.building.scope import Scope
from kettle.dag.faults import PlacelessFault
from kettle.dag.language.commands import Connect, Dependency, Order, Pin


def order(command: Order, drafts: Drafts, scope: Scope) -> None:
    """Carry out a command that says who waits for whom."""
    match command:
        case Dependency():
            parents = _ends(command.parents, drafts, scope, as_parents=True)
            children = _ends(command.children, drafts, scope, as_parents=False)
            drafts.connect(parents, children, is_weak=command.is_weak)
        case Pin():
            pins = scope.pins_in if command.is_in else scope.pins_out
            pins.setdefault(command.number, []).append(_with_edges(node_called(command.node, scope), drafts))
        case Connect():
            _connect(command, drafts, scope)


def _ends(names: Iterable[str], drafts: Drafts, scope: Scope, *, as_parents: bool) -> Sequence[int]:
    """The nodes that names stand for: of a splice, those at its end or its beginning."""
    found: dict[int, None] = {}
    for name in names:
        index = scope.nodes.get(scope.spelt(name))
        if index is not None:
            found[_with_edges(index, drafts)] = None
            continue
        splice = splice_called(name, scope, "node or splice")
        ends = splice.terminal if as_parents else splice.initial
        if not ends:
            word = "children" if as_parents else "parents"
            raise PlacelessFault(f"the splice {name} has no node without {word}, and cannot stand here")
        found.update(dict.fromkeys(ends))
    return tuple(found)


def _with_edges(index: int, drafts: Drafts) -> int:
    node = drafts.nodes[index]
    if not node.is_ordinary:
        raise PlacelessFault(f"the {node.kind.upper()} node {node.name} has no parents and no children")
    return index


def _connect(command: Connect, drafts: Drafts, scope: Scope) -> None:
    parent = splice_called(command.parent, scope)
    child = splice_called(command.child, scope)
    outward, inward = parent.scope.pins_out, child.scope.pins_in
    _refuse_gaps(command.parent, "PIN_OUT", outward)
    _refuse_gaps(command.child, "PIN_IN", inward)
    if len(outward) != len(inward):
        raise PlacelessFault(
            f"the splice {command.parent} has {len(outward)} numbers of PIN_OUT and the splice {command.child} "
            f"{len(inward)} of PIN_IN; both must have as many"
        )
    for number, nodes in outward.items():
        drafts.connect(nodes, inward[number])
    orphans = [drafts.nodes[index].name for index in child.scope.ordinary if not drafts.has_parent(index)]
    if orphans:
        names = ", ".join(orphans[:10]) + (f" and {len(orphans) - 10} more" if len(orphans) > 10 else "")
        raise PlacelessFault(
            f"in the splice {command.child} nothing comes before {names}; give each a PIN_IN or a PARENT"
        )


def _refuse_gaps(name: str, word: str, pins: dict[int, list[int]]) -> None:
    if not pins:
        raise PlacelessFault(f"the splice {name} has no {word}")
    missing = next((number for number in range(1, len(pins) + 1) if number not in pins), None)
    if missing is not None:
        raise PlacelessFault(
            f"the splice {name} has no {word} {missing}; pins are numbered from 1 without gaps"
        )
