"""Reports of usage on a pool that runs: what `kettle usage` says is what attempts, history and log say."""

import asyncio
import csv
import getpass
import importlib
import io
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import asyncpg
import msgspec
import pytest
import pytest_asyncio

from kettle.client import Client, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.events import JobAssigned, JobCompleted, JobHeld, JobStarted, JobVacated
from kettle_wire.jobs import JobId

from .evidence import Evidence
from .persons import somebody
from .waiting import happened, the_machine, there

PARQUET: Any = importlib.import_module("pyarrow.parquet")
ME: Final = getpass.getuser()
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "schedd": {"accounting_groups": {"physics": ["*"], "chem": ["*"]}},
}

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(tmp_path_factory: pytest.TempPathFactory, template: Path) -> AsyncIterator[ThrowawayPool]:
    directory = tmp_path_factory.mktemp("usage")
    async with throwaway_pool(directory, cpus=4, template=template, settings=SETTINGS) as running:
        yield running
    assert [] == running.left


async def submitted(client: Client, script: str, group: str, project: str, cwd: Path) -> JobId:
    path = cwd / f"{group}{len(list(cwd.iterdir()))}.sh"
    path.write_text(f"#!/bin/sh\n{script}")
    path.chmod(0o755)
    made = await client.submit(
        f"executable = {path}\naccounting_group = {group}\n"
        f"project_name = {project}\nrequest_cpus = 2\nqueue\n",
        cwd=cwd,
    )
    return JobId(made.cluster, 0)


async def reported(pool: ThrowawayPool, *arguments: str) -> dict[str, Any]:
    status, out, err = await pool.kettle("usage", "--json", *arguments)
    assert 0 == status, err
    return msgspec.json.decode(out, type=dict[str, Any])


async def test_report_projection_history_and_log_agree(
    pool: ThrowawayPool, evidence: Evidence, tmp_path: Path, another: str
) -> None:
    """
    Two people, two groups, and one of four attempts is evicted: what it used is lost, all else is good.

    The report, the table, the history's ads and the events of the jobs have the same sums, also after a rebuild, and so have
    the exports. The other person may not read the program, so that the only attempt there ends with the job held.
    """
    me, work = pool.client, evidence.work
    mark = evidence.directory / "mark"
    script = f"[ -e {mark} ] && exit 0\ntouch {mark}\nexec sleep 600\n"
    evicted = await submitted(me, script, "chem", "rho", work)
    await happened(me, evicted, JobStarted)
    await there(mark)  # so that it ends when it runs again
    machine = await the_machine(pool)
    status, _, err = await pool.kettle("drain", "--quick", "--resume-on-completion", machine)
    assert 0 == status, err
    busy = "i=0\nwhile [ $i -lt 200000 ]; do i=$((i+1)); done\n"
    async with somebody(pool, another, tmp_path) as eve:
        hers = await submitted(eve, "exit 0\n", "chem", "tau", work)
        await happened(eve, hers, JobHeld)
        await eve.remove(select(hers.cluster))
    jobs = [evicted, await submitted(me, busy, "physics", "rho", work), hers]
    async with asyncio.timeout(PATIENCE_S):
        await me.wait(select(*(str(job) for job in jobs)))
        while (found := await reported(pool, "--by", "owner,group"))["total"]["attempts"] < 4:
            await asyncio.sleep(0.05)
    events = [event for job in jobs for event in await me.events(job)]
    ended = [each.event for each in events if isinstance(each.event, JobVacated | JobCompleted)]
    assert [(1, False), (2, True), (1, True), (1, False)] == [
        (event.attempt, isinstance(event, JobCompleted)) for event in ended
    ]
    assert 4 == sum(isinstance(each.event, JobAssigned) for each in events)

    rows = {(row["owner"], row["group"]): row for row in found["rows"]}
    parts = {(ME, "chem"): ended[:2], (ME, "physics"): ended[2:3], (another, "chem"): ended[3:]}
    assert parts.keys() == rows.keys()
    assert [(1, 2), (1, 1), (0, 1)] == [(rows[key]["jobs"], rows[key]["attempts"]) for key in parts]
    lost = 2 * ended[0].usage.wall
    assert lost > 0
    assert [pytest.approx(lost, abs=2e-6), 0, 0] == [rows[key]["lost_core_seconds"] for key in parts]
    assert rows[another, "chem"]["uncharged_core_seconds"] > 0
    for key, of in parts.items():
        wall = sum(event.usage.wall for event in of)
        cpu = sum(event.usage.user_cpu + event.usage.system_cpu for event in of)
        for name, wanted in (("wall", wall), ("core", 2 * wall), ("cpu", cpu)):
            assert pytest.approx(wanted, abs=1e-5) == rows[key][f"{name}_seconds"], (key, name)
    history = json.loads((await pool.kettle("history", "--json"))[1])
    of_mine = sum(ad["RemoteWallClockTime"] for ad in history if ad["Owner"] == ME)
    mine = await reported(pool, "--owner", ME)
    assert pytest.approx(of_mine, abs=1e-5) == mine["total"]["wall_seconds"]
    await records_agree(pool, history)
    await tables_agree(pool, found["total"])
    status, _, err = await pool.kettle("log", "rebuild", "jobs")
    assert 0 == status, err
    assert found == await reported(pool, "--by", "owner,group")
    by_day = await reported(pool, "--by", "project,day", "--since", "2d")
    assert {"rho", "tau"} == {row["project"] for row in by_day["rows"]}
    assert found["total"] == by_day["total"]
    await exports_are_the_same(pool, by_day["rows"], tmp_path, another)
    audit = await pool.log_check()
    assert audit.clean, audit.said


async def records_agree(pool: ThrowawayPool, history: list[dict[str, Any]]) -> None:
    """What an accounting store would be sent: a record for each job of mine."""
    status, out, err = await pool.kettle("history", "--owner", ME, "--records", "-")
    assert (0, "") == (status, err)
    lines = [json.loads(line) for line in out.splitlines()]
    mine = [ad for ad in history if ad["Owner"] == ME]
    assert 2 == len(mine)
    assert {f"{ad['GlobalJobId']}#{ad['CompletionDate']}" for ad in mine} == {
        line["index"]["_id"] for line in lines[::2]
    }
    assert ["rho", "rho"] == [line["ProjectName"] for line in lines[1::2]]


async def tables_agree(pool: ThrowawayPool, total: dict[str, Any]) -> None:
    """The attempts, and the sums by owner that are kept beside them."""
    connection = await asyncpg.connect(pool.client.pool.database_url)
    try:
        (table,) = await connection.fetch(
            "SELECT sum(wall)::bigint AS wall, sum(cpu)::bigint AS cpu, sum(uncharged)::bigint AS uncharged FROM jobs.attempt"
        )
        (usage,) = await connection.fetch(
            "SELECT sum(wall)::bigint AS wall, sum(cpu)::bigint AS cpu FROM jobs.usage"
        )
    finally:
        await connection.close()
    assert [table["wall"], table["cpu"], table["uncharged"]] == [
        round(total[f"{name}_seconds"] * 1e6) for name in ("wall", "cpu", "uncharged_core")
    ]
    assert (usage["wall"], usage["cpu"]) == (table["wall"], table["cpu"])


async def exports_are_the_same(
    pool: ThrowawayPool, rows: list[dict[str, Any]], directory: Path, another: str
) -> None:
    """
    CSV and Parquet read back as the same numbers; a plot has a line for each project; what makes no sense is refused.
    """
    asked = ("usage", "--by", "project,day", "--since", "2d")
    table, plot = directory / "usage.parquet", directory / "usage.svg"
    status, out, err = await pool.kettle(*asked, "--format", "csv")
    assert (0, "") == (status, err)
    read = list(csv.DictReader(io.StringIO(out)))
    assert rows == [
        {
            name: value if name in {"project", "day"} else type(rows[0][name])(float(value))
            for name, value in row.items()
        }
        for row in read
    ]
    for output in (table, plot):
        assert 0 == (await pool.kettle(*asked, "--output", str(output)))[0]
    assert rows == PARQUET.read_table(table).to_pylist()
    assert 2 == plot.read_text().count("<polyline")
    status, out, _ = await pool.kettle("usage", "--by", "owner", "--owner", another)
    assert 0 == status
    assert ["OWNER", another, "total"] == [line.split()[0] for line in out.splitlines()]
    for words, why in (
        (["--by", "day,month"], "each day is in one month"),
        (["--output", str(directory / "x.svg")], "a plot is over time"),
        (["--since", "1d", "--until", "2d"], "--until is a moment after --since"),
    ):
        status, _, err = await pool.kettle("usage", *words)
        assert 2 == status
        assert why in err
