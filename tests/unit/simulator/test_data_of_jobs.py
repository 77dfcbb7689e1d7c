"""Data of jobs over a simulated network, and platforms that are trees."""

from pathlib import Path

import numpy as np
import pytest

from kettle_services.simulator.platforms.network import Correction
from kettle_services.simulator.platforms.platform import Level, Platform
from kettle_services.simulator.platforms.quantities import whole_bytes
from kettle_services.simulator.results.result import Result
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.simulation_file import SimulationFileError, read
from kettle_services.simulator.workloads.workload import Workload

_IDEAL = Correction()
_GIGABIT = 125_000_000
"""Bytes a second."""


def _run(platform: Platform, work: Workload) -> Result:
    return Simulation(platform=platform, workload=work, correction=_IDEAL).run()


def _rack(width: int) -> Platform:
    """Hosts with links of their own behind one link that all share."""
    return Platform.tree([Level(width=1, link="1 Gbit/s"), Level(width=width, link="10 Gbit/s")])


def test_a_tree_has_a_link_for_each_branch() -> None:
    tree = Platform.tree(
        [Level(width=2, link="10Gbit/s", latency="1ms"), Level(width=3, link="1Gbit/s")], cores=4
    )
    assert (len(tree.hosts), len(tree.links), tree.cores) == (6, 8, 24)
    assert [link.name for link in tree.links][:3] == ["host-level1-1", "host-level1-2", "host-level2-1"]
    assert tree.ways[0] == (2, 0)
    assert tree.ways[5] == (7, 1)
    assert len(tree.way(0, 1)) == 2
    assert len(tree.way(0, 5)) == 4


@pytest.mark.parametrize("jobs", [1, 2, 5])
def test_transfers_share_what_is_between_them_and_the_centre(jobs: int) -> None:
    """A second of the link's time for each job, all at once; then the work, and the same for the output."""
    work = Workload.generated(jobs, duration=10, reads=_GIGABIT, writes=2 * _GIGABIT)
    result = _run(_rack(jobs), work)
    assert result.starts.tolist() == [0] * jobs
    assert result.ends / 1e6 == pytest.approx(np.full(jobs, 10 + 3.0 * jobs), abs=1e-4)


def test_who_comes_late_finds_a_part_of_the_link() -> None:
    """
    The first has the link to itself for half a second, then both have half of it: it needs another second, the other one 1.5 s in all.
    """
    work = Workload.generated(2, duration=0, every="500 ms", reads=_GIGABIT)
    assert _run(_rack(2), work).ends / 1e6 == pytest.approx(np.array([1.5, 2.0]), abs=1e-4)


def test_without_links_data_take_no_time_and_without_data_links_do_not_matter() -> None:
    work = Workload.generated(20, duration=7, reads=10**12)
    assert _run(Platform.star(hosts=2), work).figures().makespan == 70
    plain = Workload.generated(20, duration=7)
    assert _run(_rack(2), plain).figures().makespan == 70


def test_a_batch_service_moves_the_data_to_the_first_node() -> None:
    work = Workload(submitted=[0], work=[5_000_000], nodes=2, reads=_GIGABIT, grid=True)
    assert _run(_rack(2), work).figures().makespan == pytest.approx(6, abs=1e-4)


def test_latency_and_corrections_are_those_of_tcp_unless_said_otherwise() -> None:
    """13.01 latencies of each link, and what the protocol leaves of the bandwidth."""
    platform = Platform.star(hosts=1, link="1 Gbit/s", latency="1 ms")
    work = Workload.generated(1, duration=0, reads=_GIGABIT)
    result = Simulation(platform=platform, workload=work, messages=False).run()
    assert result.ends[0] / 1e6 == pytest.approx(0.01301 + 1.05 / 0.97, rel=1e-3)


def test_a_file_has_trees_and_data(tmp_path: Path) -> None:
    text = """\
[platform]
levels = [{ width = 1, link = "1 Gbit/s" }, { width = 2, link = "10 Gbit/s" }]
cores = 2
[workload]
jobs = 4
duration = 10
reads = "125 MB"
"""
    (tmp_path / "study.toml").write_text(text)
    simulation = read(tmp_path / "study.toml").simulation
    assert simulation.platform.cores == 4
    assert simulation.run().figures().makespan == pytest.approx(10 + 4 * 1.05 / 0.97, rel=0.001)
    (tmp_path / "study.toml").write_text(text.replace("cores = 2", "hosts = 3"))
    with pytest.raises(SimulationFileError, match="1: platform: levels say how many hosts there are"):
        read(tmp_path / "study.toml")
    (tmp_path / "study.toml").write_text(text.replace('"125 MB"', '"125 Mb"'))
    with pytest.raises(SimulationFileError, match="'125 Mb' is not a size"):
        read(tmp_path / "study.toml")


def test_bytes_have_units() -> None:
    assert (whole_bytes("2 GB"), whole_bytes("2 GiB"), whole_bytes(7)) == (2 * 10**9, 2 * 2**30, 7)
