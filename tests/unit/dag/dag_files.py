"""DAG files as texts, read without a disk."""

from collections.abc import Callable, Mapping

from kettle.dag.building.options import Options
from kettle.dag.building.parser import check, parse
from kettle.dag.structure import Dag, Node

DEFAULT = Options()


def read_from(files: Mapping[str, str]) -> Callable[[str], str]:
    """A reader of these files and no others."""

    def read(path: str) -> str:
        if path not in files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return files[path]

    return read


def dag_of(text: str, files: Mapping[str, str] | None = None, options: Options = DEFAULT) -> Dag:
    """The DAG of one file, called a.dag, beside others."""
    return parse(["a.dag"], read_from({"a.dag": text, **(files or {})}), options)


def faults_of(text: str, files: Mapping[str, str] | None = None, options: Options = DEFAULT) -> list[str]:
    """All faults of one file, called a.dag, as people read them."""
    return [str(fault) for fault in check(["a.dag"], read_from({"a.dag": text, **(files or {})}), options)[1]]


def node_of(
    text: str, name: str = "A", files: Mapping[str, str] | None = None, options: Options = DEFAULT
) -> Node:
    """One node of one file."""
    return next(node for node in dag_of(text, files, options).nodes if node.name == name)


def pairs(dag: Dag) -> list[tuple[str, str]]:
    """Every parent with every child, seen through joins, sorted."""
    children = dag.edges.children()
    return sorted(
        (node.name, dag.nodes[child].name)
        for index, node in enumerate(dag.nodes)
        for child in children.nodes_of(index)
    )
