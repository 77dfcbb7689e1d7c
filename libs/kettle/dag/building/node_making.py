"""JOB, SUBDAG, FINAL, PROVISIONER, SERVICE: a line into a node."""

import posixpath
from collections.abc import Callable
from typing import Final

from kettle.dag.building.drafts import Drafts, beside
from kettle.dag.building.options import Options
from kettle.dag.building.scope import Scope
from kettle.dag.faults import PlacelessFault
from kettle.dag.language.commands import NodeCommand
from kettle.dag.structure import Node, NodeKind

MOST_NODES: Final = 10_000_000
_DAG_SUBMIT_FILE: Final = ".condor.sub"


def add_node(
    command: NodeCommand,
    drafts: Drafts,
    scope: Scope,
    options: Options,
    *,
    path: str,
    line: int,
    warn: Callable[[str], None],
) -> None:
    """Make the node of a line of the file at `path`."""
    name = scope.spelt(command.name)
    refuse_name(command.name, drafts, scope, options)
    _refuse_another(command.kind, drafts, scope)
    _refuse_words(command, options)
    if len(drafts.nodes) >= MOST_NODES:
        raise PlacelessFault(f"a DAG has at most {MOST_NODES} nodes")
    is_ordinary = command.kind in {NodeKind.JOB, NodeKind.SUBDAG}
    if command.is_done and not is_ordinary:
        warn(f"the {command.kind.upper()} node {name} cannot be done before it has run; it runs")
    directory = posixpath.dirname(path) if options.use_dag_directory else scope.directory
    index = drafts.add(
        Node(
            scope.prefix + name if scope.prefix else name,
            command.kind,
            command.submit,
            command.description,
            beside(directory, command.directory) if command.directory else directory,
            command.is_noop,
            command.is_done and is_ordinary,
            file=drafts.file,
            line=line,
        )
    )
    scope.nodes[name] = index
    if is_ordinary:
        scope.ordinary.append(index)


def refuse_name(name: str, drafts: Drafts, scope: Scope, options: Options) -> None:
    """Refuse a name of a node or a splice that is taken, or cannot be one."""
    if "+" in name and not options.allow_any_names:
        raise PlacelessFault(
            f"{name} has a +, which stands between the name of a splice and that of a node in it"
        )
    spelt = scope.spelt(name)
    if (index := scope.nodes.get(spelt)) is not None:
        before = drafts.nodes[index]
        raise PlacelessFault(f"{name} is already a node: {drafts.files[before.file]}, line {before.line}")
    if spelt in scope.splices:
        raise PlacelessFault(f"{name} is already the name of a splice")


def _refuse_another(kind: NodeKind, drafts: Drafts, scope: Scope) -> None:
    if kind is NodeKind.FINAL and scope.outer is not None:
        raise PlacelessFault(
            "a file that is spliced cannot have a FINAL node; it belongs into the outermost file"
        )
    if kind in {NodeKind.FINAL, NodeKind.PROVISIONER}:
        before = next((node for node in drafts.nodes if node.kind is kind), None)
        if before is not None:
            where = f"{drafts.files[before.file]}, line {before.line}"
            raise PlacelessFault(f"a DAG has one {kind.upper()} node, and it is {before.name}: {where}")


def _refuse_words(command: NodeCommand, options: Options) -> None:
    if command.submit.endswith(_DAG_SUBMIT_FILE) and command.kind not in {NodeKind.SUBDAG, NodeKind.FINAL}:
        inner = command.submit.removesuffix(_DAG_SUBMIT_FILE)
        raise PlacelessFault(
            f"{command.submit} would run a DAG, and a node that is a DAG is SUBDAG EXTERNAL {command.name} {inner}"
        )
    if command.directory and options.use_dag_directory:
        raise PlacelessFault(f"DIR {command.directory} cannot be used together with -usedagdir")
