"""Height and width of a graph, for the figures of a run.  Pure."""

from kettle.dag.edges import Edges


def shape(edges: Edges) -> tuple[int, int]:
    """
    How many nodes follow each other at most, and how many stand side by side at most; zeros if nodes wait for each other.
    """
    children = edges.children()
    waits_for = [0] * edges.vertices
    for vertex in range(edges.vertices):
        for child in children.of(vertex):
            waits_for[child] += 1
    level = [vertex for vertex in range(edges.vertices) if not waits_for[vertex]]
    reached, widths = 0, [0]
    depth = [0] * edges.vertices
    while level:
        following: list[int] = []
        for vertex in level:
            reached += 1
            is_node = vertex < edges.nodes
            if is_node:
                while len(widths) <= depth[vertex]:
                    widths.append(0)
                widths[depth[vertex]] += 1
            for child in children.of(vertex):
                depth[child] = max(depth[child], depth[vertex] + is_node)
                waits_for[child] -= 1
                if not waits_for[child]:
                    following.append(child)
        level = following
    return (len(widths), max(widths)) if reached == edges.vertices else (0, 0)
