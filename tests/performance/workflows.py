"""
How fast DAG files are read and checked, and how much memory a large DAG takes: JSON on standard output.

    python -m tests.performance.workflows --nodes 1000000

Every node has a JOB and a VARS line, and all but the first a PARENT line.
Seconds are processor time; what is demanded stands beside its figure, and for a large DAG is of a million nodes.  Each size runs in a process of its own, whose largest memory is told.
"""

import argparse
import json
import random
import resource
import subprocess
import sys
import time
from typing import Any

from kettle.dag import graph
from kettle.dag.building.parser import check
from kettle.testing.measurements import barred, summary

TREE, JOIN = "tree", "join"


def tree(nodes: int) -> str:
    """A DAG in which each node has one parent, drawn from those before it."""
    draw = random.Random(1)
    lines = ["JOB node0 work.sub"]
    for index in range(1, nodes):
        lines.append(f"JOB node{index} work.sub")
        lines.append(f'VARS node{index} index="{index}"')
        lines.append(f"PARENT node{draw.randrange(index)} CHILD node{index}")
    return "\n".join(lines)


def join(side: int) -> str:
    """As many parents as children, all of them with all."""
    jobs = "".join(f"JOB p{index} x.sub\nJOB c{index} x.sub\n" for index in range(side))
    parents = " ".join(f"p{index}" for index in range(side))
    return f"{jobs}PARENT {parents} CHILD {' '.join(f'c{index}' for index in range(side))}\n"


def measure(kind: str, size: int) -> dict[str, float]:
    """Read and check once, in this process."""
    text = tree(size) if kind == TREE else join(size)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    began = time.process_time()
    dag, faults = check(["bench.dag"], lambda _: text)
    parsed = time.process_time()
    found = next(graph.cycles(dag), None)
    levels = graph.levels(dag)
    ended = time.process_time()
    if faults or found or not levels.height:
        raise SystemExit(f"the DAG of the bench is faulty: {faults} {found}")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "seconds": ended - began,
        "parse_seconds": parsed - began,
        "check_seconds": ended - parsed,
        "memory_mb": memory / 1000,
        "text_mb": before / 1000,
    }


def measured(kind: str, size: int, rounds: int) -> dict[str, Any]:
    """One kind of DAG read so many times, each in a process of its own."""
    command = [sys.executable, "-m", "tests.performance.workflows", "--one", kind, "--nodes", str(size)]
    found = [json.loads(subprocess.check_output(command)) for _ in range(rounds)]
    return {name: summary((one[name] for one in found), 3) for name in found[0]}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1_000_000, help="of the large DAG")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--one", choices=(TREE, JOIN), help="one round, in this process")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one, given.nodes)))
        return
    print(
        json.dumps(
            {
                "parse_10000_nodes": barred(measured(TREE, 10_000, given.rounds), at_most={"seconds": 0.5}),
                f"parse_{given.nodes}_nodes": barred(
                    measured(TREE, given.nodes, 1), at_most={"seconds": 60.0, "memory_mb": 1_500.0}
                ),
                "all_to_all_1000": barred(measured(JOIN, 1_000, given.rounds), at_most={"seconds": 0.1}),
            }
        )
    )


if __name__ == "__main__":
    main()
