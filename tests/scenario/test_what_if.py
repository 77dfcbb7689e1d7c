"""
A pool runs jobs of two submitters, and `kettle what-if` plays that again: as it was, and with another priority factor.
"""

import asyncio
import getpass
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio

from kettle.client import select
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool

WITHIN_S: Final = 120.0
ME: Final = getpass.getuser()
ADA, BOB = f"ada.{ME}", f"bob.{ME}"
CASES: Final = ("recorded", "replayed", "changed")
JOBS: Final = 4
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    # One job per claim: the negotiator decides about each of them.
    "schedd": {"claim_worklife": 0.0, "accounting_groups": {"ada": [ME], "bob": [ME]}},
    "negotiator": {"charge_interval": 0.5},
}
SLEEP: Final = "executable = /bin/sleep\ntransfer_executable = false\narguments = 1\n"

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    directory = tmp_path_factory.mktemp("whatif")
    async with throwaway_pool(directory, cpus=1, template=template, settings=SETTINGS) as running:
        yield running
    assert [] == running.left


async def test_what_was_is_played_again_and_a_factor_counts(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Two submitters have four jobs each on one core, and Ada's factor is 10 where Bob's is 1000, so her share is 0.99 of it
    and all of hers go first.

    The replay without a change has all of them begin and end and in the same order. With a factor of 1 for Bob all of his go
    first: he waits less than without, and less than Ada, who waits longer than before. How near the replay is to what was is
    told; how near it is depends on how steady the machine was.
    """
    await pool.client.accountant.set(ADA, "factor", 10)
    clusters = [
        (await pool.client.submit(f"{SLEEP}accounting_group = {name}\nqueue {JOBS}\n", cwd=tmp_path)).cluster
        for name in ("ada", "bob")
    ]
    async with asyncio.timeout(WITHIN_S):
        for cluster in clusters:
            await pool.client.wait(select(cluster))

    change, drawing = tmp_path / "change.toml", tmp_path / "used.svg"
    change.write_text(f'[factors]\n"{BOB}" = 1\n')
    wanted = ("what-if", "--since", "10m", "--change", str(change))
    found: dict[str, Any] = {}
    people: dict[str, Any] = {}
    async with asyncio.timeout(WITHIN_S):
        # What is replayed may end seconds after what was recorded, and ends with the record, which goes on meanwhile.
        while not people or any(one[case]["ended"] < JOBS for one in people.values() for case in CASES):
            status, out, err = await pool.kettle(*wanted, "--json", "--svg", str(drawing), within_s=WITHIN_S)
            assert (0, "") == (status, err)
            found = json.loads(out)
            people = {one["name"]: one for one in found["submitters"]}
    assert {ADA, BOB} == set(people)
    for case in CASES:
        for one in people.values():
            assert (JOBS, JOBS, 0, 0) == tuple(
                one[case][key] for key in ("begun", "ended", "waiting", "preempted")
            )
    trust = found["trust"]
    assert 2 * JOBS == trust["begun_both"]
    assert trust["apart_p90"] >= 0.0, trust
    assert 1.0 == trust["same_order"]
    assert min(trust["core_hours_replayed"], trust["core_hours_recorded"]) > 0.0
    assert found["latency"] > 0

    ada, bob = people[ADA], people[BOB]
    assert ada["recorded"]["wait_mean"] < bob["recorded"]["wait_mean"]
    assert bob["changed"]["wait_mean"] < bob["replayed"]["wait_mean"]
    assert bob["changed"]["wait_mean"] < ada["changed"]["wait_mean"]
    assert ada["changed"]["wait_mean"] > ada["replayed"]["wait_mean"]
    assert "<polyline" in drawing.read_text()

    from_log = ("simulate", "run", str(change), "--from", "log", "--since", "10m")
    status, shown, _ = await pool.kettle(*from_log, within_s=WITHIN_S)
    assert 0 == status
    assert f"priority factor of {BOB}: 1" in shown
    assert f"{2 * JOBS} of {2 * JOBS} jobs" in shown


async def test_what_makes_no_sense_is_refused_with_its_place(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A group below one that is not there, an expression that is none, and a setting that nobody knows: file, line and
    place are named, and nothing is played.
    """
    for text, says in (
        ("[negotiator.groups]\n'physics.higgs' = { quota = 3 }\n", ":2: negotiator.groups.physics.higgs"),
        ("[negotiator]\n\npreemption_requirements = '1 +'\n", ":3: negotiator.preemption_requirements"),
        ("[negotiator]\npriority_halflive = 3\n", "did you mean priority_halflife?"),
    ):
        change = tmp_path / "wrong.toml"
        change.write_text(text)
        status, out, err = await pool.kettle("what-if", "--since", "10m", "--change", str(change))
        assert (2, "") == (status, out)
        assert str(change) in err
        assert says in err


async def test_a_simulated_pool_is_looked_at_as_this_one_is(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Three jobs of a minute on one core, of which one has ended, one runs and one waits when the simulation stops: imported
    into the log, the one that has ended is in the history, the log is sound, and tells of the pool as it was in between.
    """
    study = tmp_path / "study.toml"
    study.write_text(
        'model = "kettle"\nuntil = 90\n[platform]\n[workload]\njobs = 3\nduration = 60\nuser = "simon"\n'
    )
    events = str(tmp_path / "events")
    said = await pool.kettle("simulate", "run", str(study), "--events", events, within_s=WITHIN_S)
    assert 0 == said[0], said
    status, out, err = await pool.kettle("log", "import", events, "--json", within_s=WITHIN_S)
    assert 0 == status, err
    brought = {one["shard"]: (one["frames"], one["events"]) for one in json.loads(out)}
    assert ["collector.simulated", "negotiator.simulated", "schedd.simulated"] == sorted(brought)
    assert ((1, 1), (2, 7)) == (brought["collector.simulated"], brought["schedd.simulated"])
    status, out, err = await pool.kettle(
        "log", "at", "1970-01-01T00:00:30Z", "--shard", "schedd.simulated", "--json", within_s=WITHIN_S
    )
    assert 0 == status, err
    assert ["running", "idle", "idle"] == [job["status"] for job in json.loads(out)["jobs"]]

    done: list[str] = []
    async with asyncio.timeout(WITHIN_S):
        while not done:
            _, out, _ = await pool.kettle("history", "--owner", "simon", "--json", within_s=WITHIN_S)
            done = [line for line in out.splitlines() if "simon" in line]
    shards = [word for shard in brought for word in ("--shard", shard)]
    status, out, err = await pool.kettle("log", "check", *shards, within_s=WITHIN_S)
    assert 0 == status, (out, err)
