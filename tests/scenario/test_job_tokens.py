"""Tokens in the sandbox of a job: narrow, renewed, its owner's, and gone with the attempt."""

import asyncio
import os
import signal
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import aiohttp
import msgspec
import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from kettle.bus.nats import NatsBus
from kettle.bus.ports import Bus, BusError, RefusedError
from kettle.client import Client, ClientError, select
from kettle.client.connections.credentials import with_token
from kettle.client.jobs.submission import prepare
from kettle.storage import PgLog
from kettle.testing.patience import PATIENCE_S
from kettle.testing.shared_pool import SharedPool
from kettle.testing.throwaway_pool import ThrowawayPool, merged
from kettle_wire.codes import HoldCode, RefusalCode
from kettle_wire.commands.job_credentials import ISSUE_JOB_TOKENS, IssueJobTokens
from kettle_wire.commands.queue import SUBMIT, Submit, Submitted
from kettle_wire.commands.schedd import FIND_SPOOL, FindSpool
from kettle_wire.commands.spooling import SPOOL_JOBS_FROM_JOB, SpoolJobs
from kettle_wire.commands.submissions import SUBMIT_MANY, SubmitMany
from kettle_wire.events import Event, JobHeld, JobStarted, TokenRevoked, decode
from kettle_wire.identity import daemon
from kettle_wire.jobs import JobId
from kettle_wire.subjects import Subjects

from .condor import Condor
from .evidence import Evidence
from .waiting import happened

T = TypeVar("T", bound=Event)

LIFETIME_S = 9
SERVICES = ["collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam"]
RENEWED = """
executable = /bin/sh
arguments = "-c 'cat $BEARER_TOKEN_FILE; echo; stat -c %a_%U $BEARER_TOKEN_FILE; ls -A $_CONDOR_CREDS; \
echo mine > victim; rm $BEARER_TOKEN_FILE; ln -s $PWD/victim $BEARER_TOKEN_FILE; \
until test -f $BEARER_TOKEN_FILE -a ! -L $BEARER_TOKEN_FILE; do sleep 0.05; done; cat $BEARER_TOKEN_FILE'"
transfer_executable = false
output = out
use_oauth_services = kettle, scitokens
kettle_oauth_permissions = storage.read:/data/mine
scitokens_oauth_permissions_box = condor:/READ
transfer_output_files = .
queue
"""


@pytest.fixture(scope="module")
def configuration() -> dict[str, Any]:
    return {
        "settings": {
            "master": {"daemon_list": SERVICES},
            "iam": {
                "job_token_lifetime": LIFETIME_S,
                "job_token_scopes": ["condor:/READ", "storage.read:/data"],
                "job_token_audiences": ["https://storage.example"],
            },
        }
    }


def address(pool: ThrowawayPool) -> str:
    return f"http://127.0.0.1:{(pool.home / 'iam' / 'port').read_text()}"


async def recorded(pool: ThrowawayPool, kind: type[T]) -> list[T]:
    """What iam has recorded of this kind."""
    async with PgLog.connect(pool.client.pool.database_url) as log:
        frames = [frame async for frame in log.read("identity")]
    events = [decode(entry.data) for frame in frames for entry in frame.entries]
    return [event for event in events if isinstance(event, kind)]


@asynccontextmanager
async def bus_of(pool: ThrowawayPool, role: str) -> AsyncGenerator[Bus]:
    """The bus, with the credential of a service of the pool."""
    async with NatsBus.connect(
        pool.client.pool.nats_url,
        subjects=Subjects(pool.client.pool.pool),
        identity=daemon(role),
        credentials=str(pool.home / "credentials" / f"{role}.creds"),
        name="hostile",
        patience=PATIENCE_S,
    ) as bus:
        yield bus


async def test_a_job_has_its_tokens_while_it_runs(pool: ThrowawayPool, tmp_path: Path) -> None:
    """
    Checked with the published keys: its owner's, as narrow as it was asked for, renewed before it ends, for nobody else to
    read; a link in its place is replaced, not followed; and nothing of it comes back, or is left.
    """
    job = JobId((await pool.client.submit(RENEWED, cwd=tmp_path)).cluster, 0)
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select(job.cluster))
    first, modes, *names, second = (tmp_path / "out").read_text().split()
    assert ["kettle.use", "scitokens_box.use"] == names
    assert modes.startswith("600_")
    async with aiohttp.ClientSession() as http, http.get(f"{address(pool)}/jwks.json") as answer:
        keys = KeySet.import_key_set(await answer.json())
    claims = [jwt.decode(token, keys, algorithms=["ES256"]).claims for token in (first, second)]
    for each in claims:
        assert (pool.client.pool.user, "storage.read:/data/mine", "https://storage.example") == (
            each["sub"], each["scope"], each["aud"],
        )  # fmt: skip
        assert f"schedd#{job}#1" == each["kettle_session"]
        assert LIFETIME_S == each["exp"] - each["iat"]
    assert claims[0]["jti"] != claims[1]["jti"]
    assert claims[0]["iat"] < claims[1]["iat"]
    came = {"out", "victim", ".job.ad", ".machine.ad", ".chirp.config"}
    assert came == {path.name for path in tmp_path.iterdir()}
    assert "mine\n" == (tmp_path / "victim").read_text()
    async with asyncio.timeout(PATIENCE_S):
        while claims[1]["jti"] not in {each.token for each in await recorded(pool, TokenRevoked)}:
            await asyncio.sleep(0.02)
    async with aiohttp.ClientSession() as http:
        shown = {"Authorization": f"Bearer {second}"}
        async with http.get(f"{address(pool)}/v1/whoami", headers=shown) as answer:
            code = (await answer.json(content_type=None))["code"]
    assert 401 == answer.status
    assert "token.revoked" == code or claims[1]["exp"] <= time.time(), code


WAITS = """
executable = /bin/sh
arguments = "-c 'until test -e {go}; do sleep 0.05; done'"
transfer_executable = false
use_oauth_services = kettle
queue
"""


async def test_tokens_are_given_to_the_attempt_that_runs(
    pool: ThrowawayPool, evidence: Evidence, tmp_path: Path
) -> None:
    """
    Not even the shadow gets them for another attempt, another job, or one that has ended; and nobody else may ask at all.
    """
    go = evidence.directory / "go"
    job = JobId((await pool.client.submit(WAITS.format(go=go), cwd=tmp_path)).cluster, 0)
    stranger = (
        await pool.client.submit("executable = /bin/true\nrequirements = false\nqueue\n", cwd=tmp_path)
    ).cluster
    await happened(pool.client, job, JobStarted)
    async with bus_of(pool, "shadow") as shadow:

        async def asked(job: JobId, attempt: int) -> str:
            request = IssueJobTokens(schedd="schedd", job=job, attempt=attempt)
            try:
                made = await shadow.call(ISSUE_JOB_TOKENS, "iam", request, deadline=PATIENCE_S)
            except RefusedError as refusal:
                return refusal.code
            return made.tokens[0].name

        assert "kettle" == await asked(job, 1)
        for other, attempt in ((job, 2), (job, 0), (JobId(stranger, 0), 1), (JobId(99_999, 0), 1)):
            assert RefusalCode.NOT_RUNNING == await asked(other, attempt)
        go.touch()
        async with asyncio.timeout(PATIENCE_S):
            await pool.client.wait(select(job.cluster))
        assert RefusalCode.NOT_RUNNING == await asked(job, 1)
    for service in ("collector", "accounting"):
        async with bus_of(pool, service) as bus:
            with pytest.raises(BusError):
                await bus.call(
                    ISSUE_JOB_TOKENS, "iam", IssueJobTokens(schedd="schedd", job=job, attempt=1), deadline=0.5
                )


async def test_a_job_that_asks_for_too_much_is_held_with_what_it_may_have(
    pool: ThrowawayPool, tmp_path: Path
) -> None:
    wide = WAITS.format(go="go").replace("queue", "kettle_oauth_permissions = storage.modify:/data\nqueue")
    job = JobId((await pool.client.submit(wide, cwd=tmp_path)).cluster, 0)
    held = await happened(pool.client, job, JobHeld)
    assert HoldCode.CorruptedCredential == held.code
    assert "no scope that covers storage.modify:/data; it has: condor:/READ storage.read:/data" in held.reason


async def test_without_iam_a_job_waits_and_is_held_with_the_reason(
    shared_pool: SharedPool, configuration: dict[str, Any], tmp_path: Path
) -> None:
    """
    The sentence says what was missing and how it goes on.

    Only here a job has little patience: an iam that is slow for a moment would be taken for one that is away.
    """
    impatient = merged(configuration["settings"], {"shadow": {"token_wait": 0.5, "call_deadline": 1.0}})
    async with shared_pool.lent(settings=impatient) as pool:
        stopped = pool.kill("iam", signal.SIGSTOP)
        try:
            text = WAITS.format(go="go")
            job = JobId((await pool.client.submit(text, cwd=tmp_path)).cluster, 0)
            held = await happened(pool.client, job, JobHeld)
        finally:
            os.kill(stopped, signal.SIGCONT)
    assert HoldCode.CorruptedCredential == held.code
    assert f"condor_release {job}" in held.reason


BOX = """
executable = /bin/sh
arguments = "-c 'cat $_CONDOR_CREDS/box_mine.use $BEARER_TOKEN_FILE'"
transfer_executable = false
output = out
use_oauth_services = box
box_oauth_permissions_mine =
queue
"""


async def test_a_stored_credential_goes_to_the_jobs_of_its_owner(
    pool: ThrowawayPool, condor: Condor, tmp_path: Path
) -> None:
    """
    Who has stored none is told how before the job is queued; both commands know of the same credentials.
    """
    (tmp_path / "token").write_text("kettle-canary-box\n")
    (tmp_path / "job.sub").write_text(BOX)
    status, _, err = await condor("condor_submit", "job.sub")
    assert (1, True) == (status, "condor_store_cred add-oauth -s box -H mine -i FILE" in err), err
    assert [] == await pool.client.jobs(select())
    stored = ("condor_store_cred", "add-oauth", "-s", "box", "-H", "mine", "-i", "token")
    assert (0, "Credential of box stored.\n", "") == await condor(*stored)
    status, listed, err = await pool.kettle("credential", "list")
    assert (0, "") == (status, err)
    assert ["box", "mine", "token"] == listed.splitlines()[-1].split()[:3]
    assert 0 == (await condor("condor_submit", "job.sub"))[0]
    async with asyncio.timeout(PATIENCE_S):
        await pool.client.wait(select())
    assert "kettle-canary-box" * 2 == (tmp_path / "out").read_text()
    assert 0 == (await condor("condor_store_cred", "delete-oauth", "-s", "box", "-H", "mine"))[0]
    assert (1, "", "") == await condor("condor_store_cred", "query-oauth", "-s", "box", "-H", "mine")
    status, _, err = await condor("condor_store_cred", "add-pwd")
    assert (1, True) == (status, "keeps neither passwords" in err), err


GIVES_ITS_TOKEN = """
executable = /bin/sh
arguments = "-c 'cp $BEARER_TOKEN_FILE {token}.new; mv {token}.new {token}; until test -e {go}; do sleep 0.05; done'"
transfer_executable = false
use_oauth_services = kettle
queue
"""
ON_A_MACHINE = "executable = /bin/true\ntransfer_executable = false\nrequirements = false\nqueue\n"


async def test_a_jobs_token_runs_nothing_on_the_access_point(
    shared_pool: SharedPool, configuration: dict[str, Any], evidence: Evidence, place: Path, tmp_path: Path
) -> None:
    """
    What runs there has its owner's own credential: by no command, alone or among others, a job has such jobs queued; others it has.
    """
    of_this_pool = {"iam": {"job_token_scopes": ["condor:/WRITE"], "job_token_audiences": []}}
    go, shown = evidence.directory / "go", evidence.directory / "token"
    async with shared_pool.lent(settings=merged(configuration["settings"], of_this_pool)) as pool:
        parent = await pool.client.submit(GIVES_ITS_TOKEN.format(token=shown, go=go), cwd=tmp_path)
        await happened(pool.client, JobId(parent.cluster, 0), JobStarted)
        async with asyncio.timeout(PATIENCE_S):
            while not shown.exists():
                await asyncio.sleep(0.05)
        condor = Condor(place, pool, tmp_path)
        for universe in ("local", "scheduler"):
            text = f"universe = {universe}\n{ON_A_MACHINE}"
            said = await condor("condor_submit", typed=text, BEARER_TOKEN_FILE=str(shown))
            assert (1, True) == (said.status, f"jobs of the {universe} universe" in said.err), said
        said = await condor("condor_submit", typed=ON_A_MACHINE, BEARER_TOKEN_FILE=str(shown))
        assert 0 == said.status, said

        home = prepare(f"universe = scheduler\n{ON_A_MACHINE}", cwd=tmp_path)
        away = prepare(ON_A_MACHINE, cwd=tmp_path)
        in_rows = msgspec.structs.replace(
            away,
            ad={name: value for name, value in away.ad.items() if name != "JobUniverse"},
            columns=["JobUniverse"],
            rows=[[5], [12]],
        )
        known = with_token(
            pool.client.pool, {"BEARER_TOKEN_FILE": str(shown)}, evidence.directory, lambda _knob: None
        )
        async with Client.connect(pool=known, token=shown.read_text) as job:
            found = await job.submit_many({"home": home, "away": away, "rows": in_rows})
            assert isinstance(found["away"], Submitted), found
            for each in ("home", "rows"):
                assert "a running job may not submit" in str(found[each])
            request = Submit(id="1", ad=home.ad, columns=home.columns, rows=home.rows)
            with pytest.raises(ClientError, match="does not let you ask the schedd for submit"):
                await job.requests.ask(SUBMIT, request)
            own = await pool.client.submit(home, spool=True)
            spooled = await job.requests.ask(FIND_SPOOL, FindSpool(cluster=own.cluster))
            manifest = SpoolJobs(cluster=own.cluster, manifest="0" * 64)
            with pytest.raises(ClientError, match="may not send files for jobs of the scheduler universe"):
                await job.requests.ask(SPOOL_JOBS_FROM_JOB, manifest, name=spooled.shadow)
            await pool.client.remove(select(own.cluster))
            with pytest.raises(ClientError, match="does not let you ask the schedd for submit"):
                await job.requests.ask(SUBMIT_MANY, SubmitMany(submissions=[request]))
        universes = {ad["JobUniverse"] for ad in await pool.client.jobs(select(), projection=["JobUniverse"])}
        assert {5} == universes
        go.touch()
        await pool.client.remove(select())
