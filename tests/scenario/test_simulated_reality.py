"""
A real pool and its simulation: the same jobs take as long, once the delays are fitted to what the pool has recorded before.

What is compared are times that both take from the pool's own log, and jobs sleep for seconds, so that what a busy machine adds to
each is small beside them, and is fitted. Nothing here says how fast a machine has to be.
"""

import asyncio
import getpass
import json
import logging
import os
import random
import time
from collections.abc import AsyncIterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from kettle.client import select
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.simulator.simulation_file import read

LONG: Final = "KETTLE_TEST_LONG"
WITHIN_S: Final = 1200.0
CORES: Final = 8
SECONDS: Final = 6
JOBS: Final = 200
BEFORE: Final = 40
"""Jobs to which the delays are fitted."""
SLEEP: Final = "executable = /bin/sleep\ntransfer_executable = false\n"
ME: Final = getpass.getuser()
PEOPLE: Final = ("ada", "bob", "cyd")
DAY_S: Final = 90.0
"""A day of 24 hours in which everything is 960 times as fast."""
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "schedd": {"accounting_groups": {name: [ME] for name in PEOPLE}},
}

log = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(
        LONG not in os.environ,
        reason=f"it takes minutes: a pool works through 200 jobs ({LONG}=1 has it done)",
    ),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    directory = tmp_path_factory.mktemp("reality")
    async with throwaway_pool(directory, cpus=CORES, template=template, settings=SETTINGS) as running:
        yield running


async def test_the_same_jobs_take_as_long_in_reality_and_simulated(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    """
    200 jobs of 6 s on eight cores: the time from their submission to the last recorded end is told within 3 % by a simulation whose
    delays were fitted to 40 jobs before.
    """
    since = time.time()
    await _run(pool, BEFORE, tmp_path)
    found = await _calibrated(pool, since, time.time())
    real = await _run(pool, JOBS, tmp_path)
    study = tmp_path / "study.toml"
    study.write_text(
        f'model = "kettle"\n[platform]\ncores = {CORES}\n[workload]\njobs = {JOBS}\nduration = {SECONDS}\n'
        f"[kettle]\nstep = 0.01\nlatency = {found['latency']}\nstart = {found['start']}\n"
    )
    simulated = read(study).simulation.run().figures().makespan
    log.info("%.3f s in reality, %.3f s simulated, %s", real, simulated, found)
    assert simulated == pytest.approx(real, rel=0.03)
    ideal = JOBS * SECONDS / CORES
    assert abs(simulated / real - 1) < abs(ideal / real - 1), "a pool without delays would be as near"


async def test_a_recorded_day_is_told_by_its_replay(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A day in a minute and a half, in which three people submit jobs of 1 to 12 s, more by day than eight cores can run at once.

    Played again as it was, nobody's median wait is wrong by more than 5 %, and all waits together by 2 % at most.
    """
    draw = random.Random(11)
    since = time.time()
    clusters: list[int] = []
    while (now := time.time() - since) < DAY_S:
        by_day = 2.0 if now > DAY_S / 4 else 1.0
        jobs = draw.randint(1, 6)
        lines = "".join(f"arguments = {draw.choice([1, 2, 4, 8, 12])}\nqueue\n" for _ in range(jobs))
        text = f"{SLEEP}accounting_group = {draw.choice(PEOPLE)}\n{lines}"
        clusters.append((await pool.client.submit(text, cwd=tmp_path)).cluster)
        await asyncio.sleep(
            draw.expovariate(by_day * CORES / (3.5 * 5.4))
        )  # as people come, not to wait for anything
    async with asyncio.timeout(WITHIN_S):
        for cluster in clusters:
            await pool.client.wait(select(cluster))
    until = time.time()
    log.info("a day, of which the rest is predicted: %s", await _calibrated(pool, since, until, hold_out=0.6))
    change = tmp_path / "change.toml"
    change.write_text(f'[factors]\n"ada.{ME}" = 1\n')
    wanted = ("what-if", "--since", _told(since), "--until", _told(until), "--change", str(change), "--json")
    status, out, err = await pool.kettle(*wanted, within_s=WITHIN_S)
    assert 0 == status, err
    found = json.loads(out)
    trust, people = found["trust"], [one for one in found["submitters"] if one["recorded"]["begun"]]
    assert trust["begun_both"] == trust["begun_recorded"] > 100
    wrong: dict[str, float] = {
        one["name"]: one["replayed"]["wait_median"] / one["recorded"]["wait_median"] - 1 for one in people
    }
    recorded, replayed = (
        sum(one[case]["wait_mean"] * one[case]["begun"] for one in people)
        for case in ("recorded", "replayed")
    )
    log.info("a day, replayed: medians %s, total %+.2f %%, %s", wrong, (replayed / recorded - 1) * 100, trust)
    assert wrong
    assert all(abs(error) <= 0.05 for error in wrong.values())
    assert replayed == pytest.approx(recorded, rel=0.02)


async def _run(pool: ThrowawayPool, jobs: int, directory: Path) -> float:
    """For how long so many jobs take from their submission to the last recorded end, in seconds."""
    text = f"{SLEEP}arguments = {SECONDS}\nqueue {jobs}\n"
    submitted = await pool.client.submit(text, cwd=directory)
    async with asyncio.timeout(WITHIN_S):
        await pool.client.wait(select(submitted.cluster))
    status, out, err = await pool.kettle(
        "log", "show", "--cluster", str(submitted.cluster), "--json", within_s=WITHIN_S
    )
    assert 0 == status, err
    lines = [json.loads(line) for line in out.splitlines()]
    began = [_moment(line["at"]) for line in lines if line["type"].startswith("cluster.submitted")]
    ended = [_moment(line["at"]) for line in lines if line["type"].startswith("job.completed")]
    assert (1, jobs) == (len(began), len(ended))
    return max(ended) - began[0]


async def _calibrated(
    pool: ThrowawayPool, since: float, until: float, hold_out: float = 0.25
) -> dict[str, Any]:
    period = ("--since", _told(since), "--until", _told(until), "--hold-out", str(hold_out))
    status, out, err = await pool.kettle("simulate", "calibrate", *period, "--json", within_s=WITHIN_S)
    assert 0 == status, err
    found: dict[str, Any] = json.loads(out)
    return found


def _told(moment: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1e3):03d}Z"


def _moment(at: str) -> float:
    return datetime.fromisoformat(at).timestamp()
