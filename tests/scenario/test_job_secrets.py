"""
Secrets stay where they belong: each one of a pool with all kinds of them is looked for in everything that the pool keeps, says
and shows.
"""

import asyncio
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest

from kettle.client import select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.events import JobStarted
from kettle_wire.jobs import JobId

from .condor import Condor
from .evidence import Evidence
from .persons import somebody
from .test_job_tokens import SERVICES
from .waiting import happened

CANARY: Final = f"kettle-canary-{secrets.token_hex(8)}"
OURS: Final = ("credentials/", "iam/", "postgres/passfile", "run/")
"""Where the pool's own keys are, which nobody but its account reads; nothing of a job, and no token, is there in the clear."""
JOB = """
executable = /bin/sh
arguments = "-c 'cat $BEARER_TOKEN_FILE $_CONDOR_CREDS/box.use > {out}.new; mv {out}.new {out}; \
until test -e {go}; do sleep 0.05; done'"
transfer_executable = false
use_oauth_services = kettle, box
environment = "SECRET=$(Value)"
log = job.log
queue Value in ({canary}-common {canary}-own)
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {"settings": {"master": {"daemon_list": SERVICES}}}


def files(pool: ThrowawayPool) -> Iterator[tuple[str, bytes]]:
    """
    Everything below the pool's directory but the sandboxes, by relative name: servers' files, which may be elsewhere, logs, states,
    archives, cores.
    """
    for directory, _, names in os.walk(pool.home, followlinks=True):
        if f"{directory}/".startswith((f"{pool.home}/execute/", f"{pool.home}/startd/execute/")):
            continue
        for name in names:
            path = Path(directory, name)
            try:
                if path.is_file() and not path.is_symlink():
                    yield str(path.relative_to(pool.home)), path.read_bytes()
            except FileNotFoundError:
                continue


async def tables(pool: ThrowawayPool) -> str:
    """All rows of all tables as text and bytes, so that what is compressed in files is seen too."""
    found: list[str] = []
    database = await asyncpg.connect(pool.client.pool.database_url)
    try:
        rows = await database.fetch(
            "SELECT format('%I.%I', table_schema, table_name) AS name FROM information_schema.tables"
            " WHERE table_schema NOT IN ('pg_catalog', 'information_schema')"
        )
        for table in [row["name"] for row in rows]:
            for row in await database.fetch(f"SELECT * FROM {table}"):
                found += [
                    value.decode("latin-1") if isinstance(value, bytes) else str(value)
                    for value in row.values()
                ]
    finally:
        await database.close()
    assert len(found) > 100
    return "\n".join(found)


def commands(pool: ThrowawayPool) -> str:
    """The words with which the pool's processes were started."""
    found: list[str] = []
    for each in pool.processes():
        with suppress(FileNotFoundError, ProcessLookupError):  # it has ended since
            found.append(Path("/proc", each.split(" ", 1)[0], "cmdline").read_text(errors="replace"))
    assert found
    return "\n".join(found)


async def shown(pool: ThrowawayPool, jobs: list[JobId]) -> dict[str, str]:
    """What anybody may ask, and what the pool has put where people look."""
    _, audit, _ = await pool.kettle("audit", "--json")
    ads = [await pool.client.ads(kind) for kind in ("Machine", "Scheduler", "Submitter", "DaemonMaster")]
    return {
        "ads": str(ads),
        "events": str([await pool.client.events(job) for job in jobs]),
        "audit": audit,
        "commands": commands(pool),
        "tables": await tables(pool),
    }


async def test_no_secret_is_anywhere_but_where_it_belongs(
    pool: ThrowawayPool, condor: Condor, evidence: Evidence, tmp_path: Path
) -> None:
    """
    Environments, tokens of jobs, stored credentials, join tokens, refresh tokens and secrets of clients, while their jobs run and
    after their end; seeds and passwords, outside of the pool's own directories for them.
    """
    iam = pool.client.iam
    await iam.store_credential("box", f"{CANARY}-stored")
    made = {
        "join token": (await iam.create_join_token()).token.split(".")[2],
        "refresh token": (await iam.open_session()).token.split(".")[2],
        "client": await iam.register_client("robot", owner="ada", scopes=["condor:/READ"]),
    }
    go, out = evidence.directory / "go", evidence.directory / "out.$(Process)"
    text = JOB.format(go=go, out=out, canary=CANARY)
    cluster = (await pool.client.submit(text, cwd=evidence.work)).cluster
    jobs = [JobId(cluster, 0), JobId(cluster, 1)]
    said = await condor("condor_qedit", str(cluster), "Environment", f'"SECRET={CANARY}-edited"')
    assert 0 == said.status, said
    for job in jobs:
        await happened(pool.client, job, JobStarted)
    async with asyncio.timeout(PATIENCE_S):
        while not all((evidence.directory / f"out.{job.proc}").exists() for job in jobs):
            await asyncio.sleep(0.02)
    own = await pool.client.jobs(select(cluster))
    assert {f"SECRET={CANARY}-edited"} == {ad["Environment"] for ad in own}
    async with somebody(pool, "peter", tmp_path) as peter:
        for guess in (
            f'regexp("{CANARY}", Environment)',
            "size(Environment) > 0",
            "Environment =!= undefined",
        ):
            assert [] == await peter.jobs(select(cluster, constraint=guess))
            assert 2 == len(await pool.client.jobs(select(cluster, constraint=guess)))
    for job in jobs:
        token, _, rest = (evidence.directory / f"out.{job.proc}").read_text().rpartition(CANARY)
        assert "-stored" == rest
        made[f"token of {job}"] = token.rsplit(".", 1)[1]  # its signature
    running = await shown(pool, jobs)
    go.touch()
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(cluster))
        while len(past := await pool.client.history(select(cluster))) < len(jobs):
            await asyncio.sleep(0.02)
    assert {f"SECRET={CANARY}-edited"} == {ad["Environment"] for ad in past}
    places = {**{f"{name} while they ran": text for name, text in running.items()}, **await shown(pool, jobs)}
    places["job event log"] = (evidence.work / "job.log").read_text()
    for what, secret in {"canary": CANARY, **made}.items():
        assert len(secret) > 16
        assert [] == [place for place, found in places.items() if secret in found], what

    kept = dict(files(pool))
    assert {"log", "nats", "postgres"} <= {name.split("/", 1)[0] for name in kept}
    for what, secret in {"canary": CANARY, **made}.items():
        assert [] == [name for name, data in kept.items() if secret.encode() in data], what
    seeds = {
        seed
        for name, data in kept.items()
        if name.startswith("credentials/")
        for seed in re.findall(rb"\bS[UAO][A-Z2-7]{56}\b", data)
    }
    assert len(seeds) > 5
    for seed in seeds:
        assert [] == [name for name, data in kept.items() if seed in data and not name.startswith(OURS)], (
            "a seed"
        )
    assert not [name for name in kept if re.search(r"(^|/)core(\.\d+)?$", name)]
    limits = [
        Path("/proc", str(pool.pid(name)), "limits").read_text()
        for name in ("iam", "schedd", "shadow", "startd")
    ]
    assert all(re.search(r"Max core file size +0 ", each) for each in limits)
    await iam.remove_credential("box")
    await iam.remove_client("robot")
