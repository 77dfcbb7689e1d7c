"""What is told about the graph of a DAG, against networkx, which finds it in other ways."""

import json
import os
from pathlib import Path
from random import Random
from typing import Any, Final

from tests.scenario.client_environments import python_with
from tests.unit.dag.dag_files import dag_of, pairs

from kettle.dag import graph
from kettle.testing.commands.running import execute

NETWORKX: Final = "networkx==3.6.1"
SIZES: Final = (*[4] * 100, *[12] * 100, *[60] * 40, 2_000, 20_000)
JUDGE: Final = """\
import json, sys
import networkx as nx

for number, told in enumerate(json.load(open(sys.argv[1]))):
    graph = nx.DiGraph()
    graph.add_nodes_from(told["seconds"])
    graph.add_edges_from(map(tuple, told["edges"]))
    assert nx.is_directed_acyclic_graph(graph) == (not told["cycles"]), (number, told["cycles"])
    for cycle in told["cycles"]:
        assert all(graph.has_edge(*pair) for pair in zip(cycle, [*cycle[1:], cycle[0]])), (number, cycle)
        assert len(set(cycle)) == len(cycle)
    if told["cycles"]:
        cut = graph.copy()
        cut.remove_nodes_from(node for cycle in told["cycles"] for node in cycle)
        assert nx.is_directed_acyclic_graph(cut), number
        continue
    widths = [len(level) for level in nx.topological_generations(graph)]
    assert widths == told["widths"], (number, widths, told["widths"])
    weighted = nx.DiGraph()  # the time of a node is on its way out
    weighted.add_nodes_from((f"{node} {end}") for node in graph for end in ("in", "out"))
    weighted.add_weighted_edges_from((f"{node} in", f"{node} out", told["seconds"][node]) for node in graph)
    weighted.add_weighted_edges_from((f"{parent} out", f"{child} in", 0) for parent, child in graph.edges)
    assert nx.dag_longest_path_length(weighted) == told["longest"], number
    assert nx.is_path(graph, told["path"]) and sum(told["seconds"][each] for each in told["path"]) == told["longest"]
    reached = {node: told["seconds"][node] + max((0, *(told["remaining"][each] for each in graph[node]))) for node in graph}
    assert reached == told["remaining"], number
print("agreed on", number + 1)
"""


def text(nodes: int, draw: Random) -> str:
    """A DAG file: lines with one or more names on each side, of which some DAGs have one that leads back."""
    lines = [f"JOB n{number} x.sub" for number in range(nodes)]
    leads_back = draw.random() < 0.4
    for _ in range(draw.randrange(2 * nodes)):
        at = draw.randrange(1, nodes)
        before, after = range(at), range(at, nodes)
        parents = {f"n{draw.choice(before)}" for _ in range(draw.choice([1, 1, 1, 2, 3]))}
        children = {f"n{draw.choice(after)}" for _ in range(draw.choice([1, 1, 1, 2, 3]))}
        lines.append(f"PARENT {' '.join(sorted(parents))} CHILD {' '.join(sorted(children))}")
    if leads_back:
        last = draw.randrange(nodes)
        lines.append(f"PARENT n{last} CHILD n{draw.randrange(last + 1)}")
    return "".join(f"{line}\n" for line in lines)


def told(nodes: int, draw: Random) -> dict[str, Any]:
    """What we say of one DAG."""
    dag = dag_of(text(nodes, draw))
    names = [node.name for node in dag.nodes]
    seconds = {number: float(draw.randrange(1, 100)) for number in range(nodes)}
    path = graph.critical_path(dag, seconds)
    return {
        "edges": pairs(dag),
        "seconds": {names[number]: each for number, each in seconds.items()},
        "cycles": [[names[each] for each in cycle] for cycle in graph.cycles(dag)],
        "widths": graph.levels(dag).widths,
        "longest": path.seconds,
        "path": [names[each] for each in path.nodes],
        "remaining": dict(zip(names, graph.remaining(dag, seconds), strict=False)),
    }


async def test_networkx_finds_the_same(tmp_path: Path) -> None:
    """
    Whether there are cycles, and that those told are some; levels and their widths; the critical path, and what is left behind each
    node.
    """
    python = await python_with([NETWORKX], "networkx", tmp_path)
    draw = Random(27)
    (tmp_path / "told.json").write_text(json.dumps([told(nodes, draw) for nodes in SIZES]))
    said = await execute([python, "-c", JUDGE, "told.json"], tmp_path, dict(os.environ), within_s=240)
    assert (0, f"agreed on {len(SIZES)}\n") == (said.status, said.out), said
