"""What has been said so far: nodes, edges, settings."""

import posixpath
from collections.abc import Sequence

import msgspec

from kettle.dag.building.scope import Scope
from kettle.dag.edges import EdgeCollector
from kettle.dag.structure import DagJob, Dot, Node, NodeStatusFile, SpliceUse


class Drafts:
    """The DAG while its files are read."""

    def __init__(self) -> None:
        self.files: list[str] = []
        self.file = 0
        """The index of the file that is being read."""
        self.nodes: list[Node] = []
        self.splices: list[SpliceUse] = []
        self.throttles: dict[str, int] = {}
        self.dot: Dot | None = None
        self.node_status_file: NodeStatusFile | None = None
        self.jobstate_log: str | None = None
        self.job = DagJob()
        self.collector = EdgeCollector()
        self._has_parent = bytearray()
        self._has_child = bytearray()
        self.scopes: list[Scope] = []

    def add(self, node: Node) -> int:
        """Take a node; its index."""
        self.nodes.append(node)
        self._has_parent.append(0)
        self._has_child.append(0)
        return len(self.nodes) - 1

    def connect(self, parents: Sequence[int], children: Sequence[int], *, is_weak: bool = False) -> None:
        """Let every one of the children wait for every one of the parents."""
        for parent in parents:
            self._has_child[parent] = 1
        for child in children:
            self._has_parent[child] = 1
        self.collector.connect(parents, children, is_weak=is_weak)

    def has_parent(self, index: int) -> bool:
        """Whether a node waits for another one."""
        return bool(self._has_parent[index])

    def initial(self, first: int) -> list[int]:
        """The nodes from an index on that wait for nobody."""
        return [
            at
            for at in range(first, len(self.nodes))
            if not self._has_parent[at] and self.nodes[at].is_ordinary
        ]

    def terminal(self, first: int) -> list[int]:
        """The nodes from an index on for which nobody waits."""
        return [
            at
            for at in range(first, len(self.nodes))
            if not self._has_child[at] and self.nodes[at].is_ordinary
        ]

    def describe(self) -> None:
        """Give the nodes that name a SUBMIT-DESCRIPTION its text, now that all of them are known."""
        if not any(scope.descriptions for scope in self.scopes):
            return
        for scope in self.scopes:
            for index in scope.nodes.values():
                node = self.nodes[index]
                if node.description is None and (text := scope.description(node.submit)) is not None:
                    self.nodes[index] = msgspec.structs.replace(node, description=text)


def beside(directory: str, path: str) -> str:
    """A path within a directory; an absolute one stays."""
    return posixpath.join(directory, path) if directory else path
