"""Transfers over random trees end when SimGrid says that they do, with the factors that it has for TCP."""

import json
import random
import subprocess
from pathlib import Path
from typing import Final

import pytest

from kettle_services.simulator.platforms.network import TCP, Correction, Link, Network

_PYTHON: Final = "/usr/bin/python3"
"""Debian's own, for which its package has the module."""
_REFERENCE: Final = Path(__file__).parent / "simgrid_reference.py"
_CASES: Final = 200

Transfer = tuple[float, tuple[int, ...], int]
"""Begins, over which links, bytes."""


def _random_tree(draw: random.Random) -> tuple[list[Link], list[Transfer]]:
    """Each node hangs below another one by a link of its own; transfers go from node to node."""
    above = [0, *(draw.randrange(node) for node in range(1, draw.randint(2, 8)))]
    links = [
        Link(
            name=str(node),
            bandwidth=draw.choice([1e6, 1e7, 125e6, 1.25e9]),
            latency=draw.choice([0.0001, 0.001, 0.02]),
        )
        for node in range(len(above))
    ]

    def to_root(node: int) -> list[int]:
        return [node, *to_root(above[node])] if node else []

    transfers: list[Transfer] = []
    for _ in range(draw.randint(1, 8)):
        start, end = (to_root(node) for node in draw.sample(range(len(above)), 2))
        way = [link for link in start if link not in end] + [link for link in end if link not in start]
        transfers.append((draw.choice([0.0, 0.0, 0.5, 3.0]), tuple(way), draw.choice([10**5, 10**7, 10**8])))
    return links, transfers


def _ends(links: list[Link], transfers: list[Transfer], correction: Correction) -> list[float]:
    network = Network(links, correction)
    waiting = sorted(range(len(transfers)), key=lambda place: transfers[place][0])
    running: dict[int, int] = {}
    ends = [0.0] * len(transfers)
    while waiting or running:
        change = network.next_change()
        if waiting and (change is None or transfers[waiting[0]][0] <= change):
            now, way, size = transfers[waiting[0]]
            running[network.begin(now, way, size)] = waiting.pop(0)
        else:
            assert change is not None
            now = change
        for transfer in network.ended(now):
            ends[running.pop(transfer)] = now
    return ends


def test_transfers_end_as_in_simgrid() -> None:
    if subprocess.run([_PYTHON, "-c", "import simgrid"], capture_output=True, check=False).returncode:
        pytest.skip("python3-simgrid is not installed")
    draw = random.Random(5)
    cases = [_random_tree(draw) for _ in range(_CASES)]
    asked = [
        {"links": [(link.bandwidth, link.latency) for link in links], "transfers": transfers}
        for links, transfers in cases
    ]
    answer = subprocess.run(
        [_PYTHON, str(_REFERENCE), "--log=root.thres:critical"],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=True,
    )
    for (links, transfers), ends in zip(cases, json.loads(answer.stdout), strict=True):
        assert ends == pytest.approx(_ends(links, transfers, TCP), rel=0.01), (links, transfers)


def test_without_corrections_it_is_max_min_sharing_and_latency() -> None:
    links = [Link(name=name, bandwidth=100.0, latency=0.5) for name in ("up", "one", "other")]
    assert [5.0, 11.5, 10.0] == _ends(
        links, [(0.0, (0, 1), 200), (0.0, (0, 2), 600), (4.5, (0,), 250)], Correction()
    )
