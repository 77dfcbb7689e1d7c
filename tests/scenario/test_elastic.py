"""
A pool without machines of its own gets jobs: machines come as processes of this host, and go when they are idle, whatever happens
to those who decide about them.
"""

import asyncio
import json
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import aiohttp
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families as parse
from tests.conformance.providers.fault_proxy import lost_answers
from tests.integration.iam.issuer import TokenIssuer, signing_key, token_issuer

from kettle.client import JobId, select
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.servers.files import moto
from kettle.testing.servers.slurm import no_slurm, slurm
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_wire.commands.worker_pools import LeaseShown
from kettle_wire.events import decode, tag_of
from kettle_wire.leases import LeaseState

from .asking import patiently
from .elastic_peers import Cloud, Peer, Pilots, cloud, creates
from .elastic_pools import machines, pool_of_machines
from .waiting import explained

SERVICES: Final = [
    "collector", "negotiator", "schedd", "shadow", "accounting", "iam", "gateway", "scaler", "provisioner"
]  # fmt: skip
SETTINGS: Final[dict[str, dict[str, Any]]] = {
    "master": {"daemon_list": SERVICES},
    "scaler": {
        "min_interval": 0.5,
        "interval": 2.0,
        "renew_interval": 1.0,
        "answer": 10.0,
        "doubt_interval": 1.0,
        "reconcile_interval": 5.0,
    },
    "provisioner": {"call_deadline": 6.0},
    "telemetry": {"metrics": True},
}
PEER_POOL: Final = """\
name = "{name}"
max = 2
idle = "1s"
life = "{life}"
waits = 0
[[offer]]
name = "small"
provider = "{name}"
cpus = 2
memory = "1 GB"
boot = "1s"
{offer}
"""
PEER_JOBS: Final = """\
executable = /bin/true
requirements = TARGET.KettlePool == "{name}"
request_memory = 128
queue 4
"""
POOL: Final = """\
name = "lab"
max = 3
idle = "2s"
waits = 0
[[offer]]
name = "small"
provider = "process"
cpus = 2
memory = "1 GB"
price = "0.01 EUR"
boot = "1s"
[[offer]]
name = "large"
provider = "process"
cpus = 8
memory = "4 GB"
price = "0.20 EUR"
boot = "1s"
"""
JOBS: Final = """\
executable = /bin/true
request_memory = 128
queue 6
request_cpus = 6
queue 1
request_cpus = 64
queue 1
"""
"""Procs 0 to 5 fit on small machines, 6 on a large one, and 7 on none."""
AUDIENCE: Final = "https://pool.example.org"
RULES: Final = """\
[[rules]]
when.issuer = "{issuer}"
when.subject = '/^([a-z]+)$/'
owner = '\\1'
"""

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def issuer() -> AsyncIterator[TokenIssuer]:
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with token_issuer(url, listener, key=signing_key()) as made:
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rented(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Cloud]:
    with moto() as url:
        async with cloud(url, tmp_path_factory.mktemp("cloud") / "instances") as made:
            yield made


@pytest.fixture(scope="module")
def pilots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pilots | None]:
    """None where no Slurm can be started."""
    if no_slurm():
        yield None
        return
    with slurm() as cluster:
        yield Pilots(cluster, tmp_path_factory.mktemp("pilots"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pool(
    tmp_path_factory: pytest.TempPathFactory,
    template: Path,
    issuer: TokenIssuer,
    rented: Cloud,
    pilots: Pilots | None,
) -> AsyncIterator[ThrowawayPool]:
    directory = tmp_path_factory.mktemp("elastic")
    (rules := directory / "rules.toml").write_text(RULES.format(issuer=issuer.url))
    trusted = {issuer.url: [AUDIENCE]}
    peers: list[Peer] = [rented] if pilots is None else [rented, pilots]
    providers = {"process": {"kind": "process"}, **{each.name: each.table for each in peers}}
    settings = SETTINGS | {
        "iam": {"issuers": trusted},
        "gateway": {"rest": True, "issuers": trusted},
        "authorization": {"domain": "pool", "rules": str(rules)},
        "provisioner": {**SETTINGS["provisioner"], "providers": providers},
    }
    async with pool_of_machines(directory, settings=settings, template=template) as running:
        yield running


async def said(pool: ThrowawayPool, *words: str, status: int = 0) -> str:
    """What a command prints, or complains of."""
    ended, out, err = await pool.kettle("pool", *words)
    assert status == ended, (words, out, err)
    return out + err


async def planned(pool: ThrowawayPool, job: str) -> dict[str, Any]:
    """What the plan says of jobs like one, as soon as there is one that has looked at them."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            status, out, _ = await pool.kettle("pool", "explain", "lab", "--json")
            waiting: list[dict[str, Any]] = json.loads(out)["plan"]["waiting"] if status == 0 else []
            for each in waiting:
                if each["example"] == job:
                    return each
            await asyncio.sleep(0.1)


async def killed(pool: ThrowawayPool, service: str) -> None:
    """A service is killed, and starts again."""
    await pool.restarted(service, after=pool.kill(service))


async def test_a_pool_grows_for_what_waits_and_shrinks_to_nothing(
    pool: ThrowawayPool, issuer: TokenIssuer, tmp_path: Path
) -> None:
    """
    Small jobs share machines, a large one gets one of its size, one that no machine could hold is told why; the scaler and the
    provisioner are killed meanwhile; in the end no machine is left, which the record and the process table say alike. Over HTTP
    everybody sees that, and an administrator makes another pool.
    """
    (file := tmp_path / "lab.toml").write_text(POOL)
    assert "its providers could make such machines" in await said(pool, "check", str(file))
    assert "the pool lab is new" in await said(pool, "apply", str(file))
    submitted = await pool.client.submit(JOBS, cwd=tmp_path)
    cluster = submitted.cluster
    impossible = await planned(pool, f"{cluster}.7")
    assert {"clause"} == {each["obstacle"] for each in impossible["obstacles"]}
    await killed(pool, "scaler")
    await killed(pool, "provisioner")
    possible = [JobId(cluster, proc) for proc in range(7)]
    async with asyncio.timeout(3 * PATIENCE_S):
        progress = await pool.client.wait(select(*possible))
    assert not progress.bad()
    await explained(pool, f"{cluster}.7", "Pool lab: no machine of its offers could run it")
    wished = await over(pool)
    leases = [each for each in wished if each.accepted]  # the others were not asked for any more
    assert {LeaseState.GONE} == {each.state for each in leases}
    assert {"small", "large"} == {each.offer for each in wished}
    assert "large" in {each.offer for each in leases}  # which may have had the small jobs as well
    assert set() == machines(pool)
    history = await pool.client.worker_pools.timeline(leases[0].lease)
    told = [tag_of(decode(each.data)) for each in history.moments]
    assert ("lease.requested/1", "lease.gone/1") == (told[0], told[-1])
    when = datetime.fromtimestamp(leases[0].accepted, UTC).isoformat()
    in_force = json.loads(await said(pool, "explain", "lab", "--json", "--at", when))
    assert in_force["at"] <= leases[0].accepted
    report = json.loads(await said(pool, "report", "lab", "--json"))["figures"]
    assert len(leases) == report["machines"]
    assert 0 < report["used"] < report["provided"]
    assert " EUR" in await said(pool, "list")
    async with person(pool, issuer.token("ada", AUDIENCE)) as ada:
        await everybody_may_look(ada, leases[0].lease)
    async with person(pool, (pool.home / "gateway" / "token").read_text().strip()) as administrator:
        await an_administrator_changes_pools(administrator)
        await a_machine_that_fails_its_examination_goes(administrator)
    await what_it_has_cost_is_measured(pool)
    audit = await pool.log_check()
    assert audit.clean, audit.said


async def over(pool: ThrowawayPool) -> list[LeaseShown]:
    """The leases, as soon as all of them are over."""
    async with asyncio.timeout(PATIENCE_S):
        while (await pool.client.worker_pools.leases()).leases:
            await asyncio.sleep(0.1)
    return (await pool.client.worker_pools.leases(states=[LeaseState.GONE, LeaseState.FAILED])).leases


async def what_it_has_cost_is_measured(pool: ThrowawayPool) -> None:
    """What was spent today outlives the scaler that spent it; providers are asked without end."""
    spent = {
        (one.labels["worker_pool"], one.labels["currency"]): one.value
        for one in await samples(pool, "scaler", "kettle_scaler_spent")
    }
    assert 0 < spent["lab", "EUR"] < 1
    calls = await samples(pool, "provisioner", "kettle_provisioner_call_duration_seconds")
    assert "find" in {one.labels["call"] for one in calls}


async def samples(pool: ThrowawayPool, service: str, family: str) -> list[Any]:
    """What a service says of a metric to Prometheus, as soon as it says something."""
    async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession() as session:
        while True:
            told = [json.loads(path.read_text())[0] for path in (pool.home / "metrics").glob("*.json")]
            [address] = [each["targets"][0] for each in told if each["labels"]["service"] == service]
            async with session.get(f"http://{address}/metrics") as answer:
                read: Any = parse(await answer.text())
            if found := [one for each in read if each.name == family for one in each.samples]:
                return found
            await asyncio.sleep(0.1)


@asynccontextmanager
async def person(pool: ThrowawayPool, token: str) -> AsyncGenerator[aiohttp.ClientSession]:
    """Somebody who asks over HTTP."""
    address = f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(address, headers=headers, middlewares=(patiently,)) as session:
        yield session


async def asked(
    session: aiohttp.ClientSession, method: str, path: str, *, key: str = "", **said: Any
) -> tuple[int, Any]:
    """The status and the answer."""
    headers = {"Idempotency-Key": key} if key else {}
    if "data" in said:
        headers["Content-Type"] = "text/plain"
    async with session.request(method, path, headers=headers, **said) as response:
        return response.status, await response.json(content_type=None)


async def everybody_may_look(ada: aiohttp.ClientSession, lease: str) -> None:
    """Who administers nothing sees pools, plans and leases, and changes none."""
    status, pools = await asked(ada, "GET", "/v2/pools")
    assert (200, ["lab"]) == (status, [each["name"] for each in pools["pools"]])
    status, lab = await asked(ada, "GET", "/v2/pools/lab")
    assert (200, ["small", "large"]) == (status, [each["offer"] for each in lab["offers"]]), lab
    version = lab["summary"]["version"]
    assert [version] == [each["version"] for each in pools["pools"]]
    for query, carried_out in (("", True), ("?dry_run=1", False)):
        status, plan = await asked(ada, "GET", f"/v2/pools/lab/plan{query}")
        assert (200, carried_out) == (status, plan["carried_out"]), plan
        assert plan["number"] > 0
    assert (200, {"leases": [], "more": 0}) == await asked(ada, "GET", "/v2/leases")
    status, over = await asked(ada, "GET", "/v2/leases?state=gone&state=failed&pool=lab")
    assert (200, True) == (status, lease in [each["id"] for each in over["leases"]]), over
    one = next(each for each in over["leases"] if "ready" in each)
    span = {"since": one["ready"], "until": one["ended"], "points": "5"}
    status, series = await asked(ada, "GET", "/v2/pools/lab/machines", params=span)
    assert (200, 5, 5) == (status, len(series["times"]), len(series["wanted"])), series
    assert max(series["ready"]) > 0
    status, report = await asked(ada, "GET", "/v2/pools/lab/report", params={"by": "job"})
    assert (200, True) == (status, any(each["name"].endswith("@schedd") for each in report["shares"])), report
    assert report["cost"] == pytest.approx(sum(each["cost"] for each in report["shares"]))
    for path, words in (("/pools", 'href="/pools/lab"'), ("/pools/lab", '<polyline class="ready"')):
        async with ada.get(path, headers={"Accept": "text/html"}) as page:
            assert (200, True) == (page.status, words in await page.text()), path
    status, told = await asked(ada, "GET", f"/v2/leases/{lease}/timeline")
    assert (200, "lease.gone/1") == (status, told["moments"][-1]["type"]), told
    assert (200, told["lease"]) == await asked(ada, "GET", f"/v2/leases/{lease}")
    for path in ("/v2/pools/moon", "/v2/pools/moon/plan", "/v2/leases?pool=moon", "/v2/leases/moon-1-1"):
        status, refused = await asked(ada, "GET", path)
        assert (404, True) == (status, "moon" in refused["detail"]), refused
    orders: list[tuple[str, str, dict[str, Any]]] = [
        ("GET", f"/v2/leases/{lease}/console", {}),
        ("POST", "/v2/pools", {"data": POOL}),
        ("POST", "/v2/pools?dry_run=1", {"data": POOL}),
        ("POST", "/v2/pools/lab:pause", {"json": {}}),
        ("POST", "/v2/leases", {"json": {"pool": "lab", "offer": "small"}}),
        ("DELETE", f"/v2/leases/{lease}", {}),
    ]
    for method, path, body in orders:
        status, refused = await asked(ada, method, path, **body)
        assert (403, "not_permitted") == (status, refused["code"]), refused
    _, lab = await asked(ada, "GET", "/v2/pools/lab")
    assert ("active", version) == (lab["summary"]["standing"], lab["summary"]["version"])


async def a_machine_that_fails_its_examination_goes(administrator: aiohttp.ClientSession) -> None:
    """What an offer's program says of a machine is why the machine is removed before it takes a job."""
    script = "#!/bin/sh\\necho there is no cvmfs here >&2\\nexit 3"
    examination = f'boot = "1s"\n[offer.examination]\nscript = "{script}"\n'
    sick = POOL.replace('"lab"', '"sick"').replace('boot = "1s"\n', examination, 1)
    status, applied = await asked(administrator, "POST", "/v2/pools", data=sick)
    assert (200, 1) == (status, applied["version"]), applied
    machine = {"pool": "sick", "offer": "small"}
    status, ordered = await asked(administrator, "POST", "/v2/leases", key="s", json=machine)
    assert 201 == status, ordered
    path = f"/v2/leases/{ordered['id']}"
    async with asyncio.timeout(PATIENCE_S):
        while (await asked(administrator, "GET", path))[1]["state"] != "gone":
            await asyncio.sleep(0.1)
    _, told = await asked(administrator, "GET", f"{path}/timeline")
    assert any("there is no cvmfs here" in each["sentence"] for each in told["moments"]), told
    assert "lease.ready/1" not in {each["type"] for each in told["moments"]}


async def an_administrator_changes_pools(administrator: aiohttp.ClientSession) -> None:
    """Pools and machines are made and given up; a repeat is the same request."""

    async def order(action: str, said: dict[str, str], key: str = "") -> tuple[int, Any]:
        return await asked(administrator, "POST", f"/v2/pools/web:{action}", key=key, json=said)

    web = POOL.replace('"lab"', '"web"').replace('"2s"', '"1h"')
    new = ["the pool web is new", "offer small is new", "offer large is new"]
    would = await asked(administrator, "POST", "/v2/pools?dry_run=1", data=web)
    assert (200, {"pool": "web", "version": 0, "changes": new}) == would
    first = await asked(administrator, "POST", "/v2/pools", key="a", data=web)
    assert (200, {"pool": "web", "version": 1, "changes": new}) == first
    assert first == await asked(administrator, "POST", "/v2/pools", key="a", data=web)
    status, reused = await asked(administrator, "POST", "/v2/pools", key="a", data=POOL)
    assert (422, "idempotency_key.reused") == (status, reused["code"])
    status, shown = await asked(administrator, "GET", "/v2/pools/web")
    same = await asked(administrator, "POST", "/v2/pools", json=shown["pool"])
    assert (200, []) == (same[0], same[1]["changes"])
    status, refused = await asked(administrator, "POST", "/v2/pools", json=shown["pool"] | {"min": 9})
    assert (422, "/body/min") == (status, refused["errors"][0]["pointer"]), refused
    status, refused = await asked(administrator, "POST", "/v2/pools", data=web.replace("cpus", "cpu"))
    assert 422 == status
    assert any("did you mean cpus?" in each["detail"] for each in refused["errors"]), refused

    status, paused = await order("pause", {"reason": "a test"})
    assert (200, "paused", "a test") == (status, paused["standing"], paused["reason"])
    machine = {"pool": "web", "offer": "small"}
    status, refused = await asked(administrator, "POST", "/v2/leases", key="b", json=machine)
    assert (422, True) == (status, "kettle pool resume web" in refused["detail"]), refused
    status, resumed = await order("resume", {})
    assert (200, "active") == (status, resumed["standing"])

    ordered = await asked(administrator, "POST", "/v2/leases", key="c", json=machine)
    assert 201 == ordered[0], ordered
    assert ordered == await asked(administrator, "POST", "/v2/leases", key="c", json=machine)
    path = f"/v2/leases/{ordered[1]['id']}"
    given_up = await asked(administrator, "DELETE", f"{path}?reason=enough&force=1", key="d")
    assert (200, ordered[1]["id"]) == (given_up[0], given_up[1]["id"])
    assert given_up == await asked(administrator, "DELETE", f"{path}?reason=enough&force=1", key="d")
    async with asyncio.timeout(PATIENCE_S):
        while (await asked(administrator, "GET", path))[1]["state"] not in {"gone", "failed"}:
            await asyncio.sleep(0.1)
    status, said = await asked(administrator, "GET", f"{path}/console")
    assert (200, str) == (status, type(said["text"]))
    status, _ = await asked(administrator, "DELETE", path)
    assert 404 == status

    status, draining = await order("drain", {"reason": "less"})
    assert (200, "draining") == (status, draining["standing"])
    retired = await order("retire", {}, key="e")
    assert (200, "retired") == (retired[0], retired[1]["standing"])
    assert retired == await order("retire", {}, key="e")
    status, refused = await asked(administrator, "POST", "/v2/leases", key="f", json=machine)
    assert (422, True) == (status, "apply its file again" in refused["detail"]), refused


async def test_pilots_of_a_batch_system_run_jobs_and_leave(
    pool: ThrowawayPool, pilots: Pilots | None, tmp_path: Path
) -> None:
    """
    Jobs wait, pilots start as jobs of a real Slurm, join, run them, and are gone when nothing waits; with `kettle pool check` Slurm
    itself is asked first.
    """
    if pilots is None:
        pytest.skip(no_slurm())
    (file := tmp_path / "long.toml").write_text(
        PEER_POOL.format(name="pilots", life="24h", offer=pilots.offer)
    )
    assert "the partition ends jobs after" in await said(pool, "check", str(file), status=1)
    await works_and_goes(pool, pilots, tmp_path)


async def test_instances_of_a_cloud_run_jobs_and_leave(
    pool: ThrowawayPool, rented: Cloud, tmp_path: Path
) -> None:
    """
    Jobs wait, instances start with the worker's program in their user data, join, run them, and are terminated when nothing waits; the
    first answer of the cloud is lost, and no machine is made twice.
    """
    with rented.proxy.fault(lost_answers(creates, times=1)):
        over = await works_and_goes(pool, rented, tmp_path)
    assert len(rented.machines.started) <= len(over)


async def works_and_goes(pool: ThrowawayPool, peer: Peer, directory: Path) -> list[LeaseShown]:
    """
    A pool of a peer gets jobs and loses its machines, and everybody says that; its leases.

    What has run the jobs was ready. A machine that nobody waited for any more may have been given up before it was.
    """
    (file := directory / "pool.toml").write_text(
        PEER_POOL.format(name=peer.name, life="30m", offer=peer.offer)
    )
    assert "its providers could make such machines" in await said(pool, "check", str(file))
    await said(pool, "apply", str(file))
    submitted = await pool.client.submit(PEER_JOBS.format(name=peer.name), cwd=directory)
    async with asyncio.timeout(3 * PATIENCE_S):
        progress = await pool.client.wait(select(submitted.cluster))
        assert not progress.bad()
        while (await pool.client.worker_pools.leases(peer.name)).leases:
            await asyncio.sleep(0.1)
    over = (await pool.client.worker_pools.leases(peer.name, states=[LeaseState.GONE])).leases
    worked = [each for each in over if each.ready]
    assert worked
    assert all(each.handle for each in worked)
    assert [] == await asyncio.to_thread(peer.there)
    await said(pool, "retire", peer.name)
    return over
