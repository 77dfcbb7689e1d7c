"""
Runs of WRENCH 2.1 (with SimGrid 3.32), in its published model of HTCondor, and what the same jobs come to here.

`data/wrench.tsv`: N jobs of one core, all submitted at once to hosts that a bare-metal or batch service has; the durations of
table `distinct` are D x (1 + 0.5 x ((7919 x i mod 1000) / 1000)).
"""

import csv
from pathlib import Path
from typing import Final

import pytest

from kettle_services.simulator.platforms.hosts import Host
from kettle_services.simulator.platforms.platform import Platform
from kettle_services.simulator.simulation import Simulation
from kettle_services.simulator.workloads.workload import Workload
from kettle_services.simulator.wrench.delays import Delays, Oddities
from kettle_services.simulator.wrench.pool import WrenchPool

_US: Final = 1_000_000
_EXACT: Final = 0.001
_OTHER_ORDER: Final = 0.06
"""How far off the largest difference is where the queue of the reference is in an order of its own."""


_SLOW_MESSAGES: Final = 0.02
"""Where control messages take time: simultaneous ends are spread out a little differently, and a few cycles more or less are paid."""


def _rows(*, latency: bool = False) -> list[dict[str, str]]:
    with (Path(__file__).parent / "data" / "wrench.tsv").open() as file:
        rows = csv.DictReader(file, delimiter="\t")
        return [row for row in rows if (row["table"] == "latency") is latency]


def _seconds(text: str) -> int:
    return round(float(text) * _US)


def _run(row: dict[str, str], *, unstable_sort: bool) -> tuple[float, float, float]:
    """First start, mean start, and when the last end was reported, in seconds."""
    hosts = [Host(name=f"host{n}", cores=int(row["cores"])) for n in range(int(row["hosts"]))]
    grid = row["mode"] == "grid"
    pre, post = _seconds(row["pre"]), _seconds(row["post"])
    pool = WrenchPool(
        bare_metal=() if grid else hosts,
        batch=hosts if grid else (),
        delays=Delays(
            negotiator=_seconds(row["negotiator"]),
            grid_pre=pre,
            grid_post=post,
            non_grid_pre=pre,
            non_grid_post=post,
        ),
        oddities=Oddities(unstable_sort=unstable_sort),
    )
    submit = pool.submit_to_batch if grid else pool.submit
    for job in range(int(row["jobs"])):
        share = 1 + 0.5 * (7919 * job % 1000 / 1000) if row["table"] == "distinct" else 1.0
        submit(0, round(float(row["duration"]) * share * _US))
    pool.run()
    return min(pool.starts) / _US, sum(pool.starts) / len(pool.starts) / _US, max(pool.reported) / _US


def _name(row: dict[str, str]) -> str:
    return "-".join(
        row[part]
        for part in ("table", "mode", "jobs", "hosts", "cores", "duration", "negotiator", "pre", "post")
    )


def _order_matters(row: dict[str, str]) -> bool:
    return row["table"] == "distinct" and int(row["jobs"]) > 16


@pytest.mark.parametrize("row", _rows(), ids=_name)
def test_a_row_of_the_reference(row: dict[str, str]) -> None:
    """
    Equal where the order of the queue does not matter; elsewhere nearly, and equal in WRENCH's own order if its cycles take time.
    """
    wanted = [float(row[column]) for column in ("first_start", "mean_start", "makespan")]
    any_order = not _order_matters(row)
    timeless = row["negotiator"] == "0"
    as_meant = any_order or (timeless and row["mode"] == "grid")
    assert wanted == pytest.approx(_run(row, unstable_sort=False), rel=_EXACT if as_meant else _OTHER_ORDER)
    as_it_is = as_meant or not timeless
    assert wanted == pytest.approx(_run(row, unstable_sort=True), rel=_EXACT if as_it_is else _OTHER_ORDER)


@pytest.mark.parametrize("row", _rows(latency=True), ids=lambda row: f"{_name(row)}-{row['latency']}")
def test_a_row_with_links_that_take_time(row: dict[str, str]) -> None:
    """
    A star of links of 1 Gbit/s: the first start is after seven messages, each of 13.01 latencies, and the rest is near.
    """
    pre, post = _seconds(row["pre"]), _seconds(row["post"])
    result = Simulation(
        platform=Platform.star(
            hosts=int(row["hosts"]),
            cores=int(row["cores"]),
            link="1Gbit/s",
            latency=float(row["latency"]),
        ),
        workload=Workload.generated(
            int(row["jobs"]), duration=float(row["duration"]), grid=row["mode"] == "grid"
        ),
        delays=Delays(
            negotiator=_seconds(row["negotiator"]),
            grid_pre=pre,
            grid_post=post,
            non_grid_pre=pre,
            non_grid_post=post,
        ),
    ).run()
    starts = result.starts / _US
    assert float(row["first_start"]) == pytest.approx(starts.min(), abs=0.002)
    assert float(row["mean_start"]) == pytest.approx(starts.mean(), rel=_SLOW_MESSAGES)
    assert float(row["makespan"]) == pytest.approx(result.figures().makespan, rel=_SLOW_MESSAGES)
