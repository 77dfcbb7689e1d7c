"""Large submissions whose jobs come into the queue little by little, in a pool that runs."""

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from kettle.client import CommandRefusedError, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.schedd import FactoryOutcome

from .job_log import written

SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "schedd": {
        "job_transforms": [
            {"name": "site", "transform": 'REQUIREMENTS Team =?= "red"\nEVALSET Colour strcat(Team, "dish")'}
        ],
        "submit_requirements": [
            {"name": "team", "expression": 'Team =!= "blue"', "reason": '"blue is out of fashion"'},
            {"name": "hint", "expression": "Team =?= undefined", "is_warning": "true"},
        ],
    }
}
MANY: Final = """
executable = /bin/true
transfer_executable = false
arguments = $(Process)
log = jobs.log
max_materialize = 6
max_idle = 4
queue 20
"""
WAITING: Final = """
executable = /bin/true
transfer_executable = false
requirements = false
log = waiting.log
max_idle = 2
queue 20000
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": SETTINGS}


async def test_all_jobs_run_and_no_more_than_a_few_are_there(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Twenty jobs of which four may wait all end well, in the log each is submitted in its turn, and the audit agrees.
    """
    submitted = await pool.client.submit(MANY, cwd=tmp_path)
    assert 20 == submitted.count
    async with asyncio.timeout(PATIENCE_S):
        progress = await pool.client.wait(select(submitted.cluster))
    assert (20, []) == (progress.counts["completed"], progress.bad())
    text = await written(tmp_path / "jobs.log", "\n005 ", times=20)
    kinds = [line[:3] for line in text.splitlines() if line[:4] in {"000 ", "005 "}]
    idle = most = 0
    for kind in kinds:
        idle += 1 if kind == "000" else -1
        most = max(most, idle)
    assert (20, True) == (kinds.count("000"), most <= 6)


async def test_a_factory_is_seen_paced_stopped_and_given_up(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Twenty thousand jobs take the room of two; edit makes it three, a restart keeps that, hold and rm do what they say.
    """
    cluster = (await pool.client.submit(WAITING, cwd=tmp_path)).cluster
    async with asyncio.timeout(PATIENCE_S):  # the first ones are made as soon as the submission is recorded
        while len(await pool.client.jobs(select(cluster))) < 2:
            await asyncio.sleep(0.02)
    waits = asyncio.create_task(pool.client.wait(select(f"{cluster}.19999")))
    assert f"Cluster {cluster}: 19998 of 20000 jobs not yet made" in (await pool.kettle("q", f"{cluster}"))[1]
    _, said, _ = await pool.kettle("why", f"{cluster}.19999")
    assert (
        f"2 of the 20000 jobs of cluster {cluster} are made; the others follow when fewer than 2 are idle or held"
        in said
    )
    _, said, _ = await pool.kettle("why", f"{cluster}")
    assert f"2 jobs, {cluster}.0 to {cluster}.1, are idle for the same reason" in said
    assert f"19998 jobs of cluster {cluster} are not in the queue yet" in said
    _, said, noted = await pool.kettle("q", f"{cluster}", "--limit", "1")
    assert "And 1 more job: --limit 0 shows all of them" in noted
    assert f" {cluster}.0 " in f" {said}".replace("\n", " ")
    assert "Total for query: 2 jobs" in said
    code, said, _ = await pool.kettle("edit", f"{cluster}", "max_idle=3")
    assert (0, f"Cluster {cluster}: JobMaterializeMaxIdle = 3.") == (code, said.strip())
    code, _, noted = await pool.kettle("edit", f"{cluster}", 'Colour="red"')
    assert (0, True) == (
        code,
        f"jobs of cluster {cluster} are still to be made, and will come as sub" in noted,
    )
    assert "" == (await pool.kettle("edit", f"{cluster}.0", 'Colour="red"'))[2]
    pid = pool.kill("schedd")
    await pool.restarted("schedd", after=pid)
    async with asyncio.timeout(PATIENCE_S):
        while len(ads := await pool.client.jobs(select(cluster))) < 3:
            await asyncio.sleep(0.02)
    assert [3, 3, 20_000] == [
        ads[-1][name] for name in ("JobMaterializeMaxIdle", "JobMaterializeNextProcId", "TotalSubmitProcs")
    ]
    held = await pool.client.hold(select(cluster))
    assert [FactoryOutcome(cluster, "done", 19_997)] == held.factories
    _, removed, _ = await pool.kettle("rm", f"{cluster}")
    assert f"19997 jobs of cluster {cluster} will never be made." in removed
    async with asyncio.timeout(PATIENCE_S):
        assert {"removed": 1} == {k: v for k, v in (await waits).counts.items() if v}
    assert f"Job {cluster}.19999 was never made" in (await pool.kettle("why", f"{cluster}.19999"))[1]
    audit = await pool.log_check()
    assert audit.clean, audit.said


async def test_the_site_changes_refuses_and_warns(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    A transform adds to the jobs that it is meant for, a requirement refuses others with its reason, another only warns.
    """
    text = "executable = /bin/true\ntransfer_executable = false\nrequirements = false\n"
    (tmp_path / "red.sub").write_text(f'{text}+Team = "red"\nqueue 2\n')
    code, said, warned = await pool.kettle("submit", "red.sub", "--json", cwd=tmp_path)
    assert (0, True) == (code, "(submit requirement hint)" in warned)
    ads = await pool.client.jobs(select(json.loads(said)["cluster"]))
    assert ["reddish", "reddish"] == [ad["Colour"] for ad in ads]
    with pytest.raises(CommandRefusedError, match="blue is out of fashion"):
        await pool.client.submit(f'{text}+Team = "blue"\nqueue\n', cwd=tmp_path)
