"""Results as drawings: what stands in them follows from the jobs."""

import re
from xml.etree import ElementTree as ET

import numpy as np
import pytest

from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.results.drawings import gantt as bars
from kettle_services.simulator.results.drawings.all_of_them import drawn
from kettle_services.simulator.results.drawings.axes import COLOURS, LEFT, RIGHT, WIDTH, Axes, ticks
from kettle_services.simulator.results.drawings.gantt import gantt
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.workloads.distributions import Uniform
from kettle_services.simulator.workloads.workload import Workload

_SVG = "{http://www.w3.org/2000/svg}"
_BAR = re.compile(r"M([\d.]+),([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z")


def _paths(svg: str) -> dict[str, list[tuple[float, ...]]]:
    """The bars by their colours: left, upper edge, width, height."""
    root = ET.fromstring(svg)
    return {
        path.get("fill", ""): [tuple(map(float, bar)) for bar in _BAR.findall(path.get("d", ""))]
        for path in root.iter(f"{_SVG}path")
        if _BAR.match(path.get("d", ""))
    }


def _result(hosts: int = 2, cores: int = 2, jobs: int = 6) -> Result:
    work = Workload.generated(jobs, duration=10, user="ada") + Workload.generated(
        1, duration=20, cores=cores, user="bob"
    )
    return Simulation(platform=Platform.star(hosts=hosts, cores=cores), workload=work).run()


def test_a_job_is_a_bar_on_its_host_as_long_as_it_ran() -> None:
    """Six jobs of 10 s on two hosts of two cores, then one of 20 s on both cores of a host, from 10 s on."""
    found = _paths(gantt(_result()))
    whole = WIDTH - LEFT - RIGHT
    assert [round(bar[2] / whole * 30) for bar in found[COLOURS[0]]] == [10] * 6
    assert [
        (round((bar[0] - LEFT) / whole * 30), round(bar[2] / whole * 30)) for bar in found[COLOURS[1]]
    ] == [
        (10, 20),
        (10, 20),
    ]
    rows = {bar[1] for each in found.values() for bar in each}
    assert len(rows) == 4


def test_no_two_bars_lie_on_each_other() -> None:
    work = Workload.generated(300, duration=Uniform(0, 50), seed=2) + Workload.generated(
        100, duration=Uniform(0, 50), cores=3, seed=3, user="bob"
    )
    work = work + Workload.generated(20, duration=0, user="nobody")
    result = Simulation(platform=Platform.star(hosts=3, cores=4), workload=work).run()
    by_row: dict[float, list[tuple[float, float]]] = {}
    for each in _paths(gantt(result)).values():
        for left, top, width, _ in each:
            by_row.setdefault(top, []).append((left, left + width))
    assert len(by_row) == 12
    for spans in by_row.values():
        spans.sort()
        ends = np.maximum.accumulate([end for _, end in spans])
        # A bar of no time is drawn 0.2 wide, and places are rounded.
        assert all(start >= end - 0.41 for (start, _), end in zip(spans[1:], ends, strict=False))


def test_very_many_jobs_are_shown_by_how_full_the_hosts_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bars, "MOST_BARS", 5)
    found = _paths(gantt(_result()))
    dark = found[COLOURS[0].lower()]
    whole = WIDTH - LEFT - RIGHT
    # 80 s of a core in all, of which each host has 2.
    area = sum(width / whole * 30 * 2 for _, _, width, _ in dark)
    half = sum(
        width / whole * 30 for fill, each in found.items() for _, _, width, _ in each if fill != COLOURS[0]
    )
    assert area + half == pytest.approx(100, rel=0.02)


def test_jobs_whose_host_is_not_known_are_shown_by_user() -> None:
    result = _result()
    result.hosts = None
    assert ">ada</text>" in gantt(result)
    assert ">host1</text>" not in gantt(result)


def test_all_drawings_are_wellformed_and_names_are_no_markup() -> None:
    work = Workload.generated(3, duration=10, user="<b>&") + Workload.generated(3, duration=5, every=3)
    for svg in drawn(Simulation(platform=Platform.star(hosts=1), workload=work).run()).values():
        assert ET.fromstring(svg).tag == f"{_SVG}svg"
        assert "<b>" not in svg


def test_times_are_those_since_the_first_submission() -> None:
    late = Workload(submitted=[10**15, 10**15], work=[10_000_000] * 2)
    result = Simulation(platform=Platform.star(hosts=1, cores=2), workload=late).run()
    assert result.in_use(2)[0].tolist() == [0.0, 5.0, 10.0]
    assert _paths(gantt(result))[COLOURS[0]][0][0] == LEFT


def test_an_axis_of_time_has_round_units() -> None:
    axes = Axes("", across=7200.0, up=1.0)
    axes.time_axis()
    assert [">0 h<", ">1 h<", ">2 h<"] == [
        each for each in re.findall(r">[\d.]+ h<", axes.svg()) if ".5" not in each
    ]


@pytest.mark.parametrize(
    ("most", "wanted"),
    [(6, [0, 1, 2, 3, 4, 5, 6]), (9.9, [0, 2, 4, 6, 8]), (1, [0, 0.2, 0.4, 0.6, 0.8, 1]), (0, [0])],
)
def test_ticks_are_round_numbers(most: float, wanted: list[float]) -> None:
    assert ticks(most) == pytest.approx(wanted)
