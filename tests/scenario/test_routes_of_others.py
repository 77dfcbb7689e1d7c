"""
Every route of one person's jobs, services and sessions, with another person's token: nothing is changed, nothing secret is read, and what
somebody may not know of answers as what there is not.
"""

import asyncio
import re
import ssl
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from kettle.client import select
from kettle.pki.certificates import make_request
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.servers.held_port import held_port
from kettle.testing.throwaway_pool import ThrowawayPool, merged
from kettle_wire.commands.sessions import NewSession, SessionView
from kettle_wire.rest.catalogue import ROUTES
from kettle_wire.rest.service_certificates import ServiceCertificate
from kettle_wire.task_queues import TaskPlan

from .asking import patiently
from .pages.hubs import POOL, SERVICES, IssuerHere
from .test_published_services import own_token

pytestmark = [
    pytest.mark.scenario,
    pytest.mark.embedded,
    pytest.mark.skipif(
        not selection.servers_are_ours(),
        reason="who may connect to servers of somebody else is theirs to say",
    ),
]

HERE: Final = IssuerHere()
SECRET: Final = "word-of-the-owner-alone"
NOBODY: Final = {"job": "987654.0", "session": "0123456789ab", "task-queue": "0123456789ab"}
"""Ids of nothing."""
KNOWN_TO_ALL: Final = frozenset({
    "GET /v2/jobs/{id}", "GET /v2/jobs/{id}/history", "GET /v2/jobs/{id}/timeline",
    "GET /v2/jobs/{id}/transfers", "GET /v2/jobs/{id}/why", "POST /v2/jobs/{id}/what-if",
})  # fmt: skip
"""A queue is read by everybody, as with condor_q; environments in it are not."""
BODIES: Final[Mapping[str, Any]] = {
    "PATCH /v2/jobs/{id}": {"attributes": {"JobPrio": 3}},
    "PATCH /v2/sessions/{id}": {"size": {"workers": 0}, "share": ["ada"]},
    "POST /v2/sessions/{id}:restart": {},
    "POST /v2/sessions/{id}/certificate": {"request": "none"},
    "POST /v2/task-queues/{id}/tasks": {"tasks": ["id"]},
    "POST /v2/jobs/{id}/what-if": {"attributes": {"RequestMemory": 17}},
}


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    own: dict[str, dict[str, Any]] = {
        "gateway": {
            "request_burst": 1e6,
            "requests_per_second": 1e6,
            "services_domain": "tcp.localhost",
        }
    }
    services = (*SERVICES, "sessions")
    return {"settings": merged(HERE.settings(tmp_path_factory.mktemp("rules"), services), own)}


@pytest_asyncio.fixture
async def theirs(pool: ThrowawayPool) -> AsyncIterator[SessionView]:
    """A session that publishes a web server."""
    port = held_port()
    made = await pool.client.sessions.create(
        NewSession(
            kind="process",
            name="theirs",
            command=[sys.executable, "-m", "http.server", str(port), "--bind", "127.0.0.1"],
            services=f"web:{port}/http, raw:{port}/tcp",
            environment={"WORD": SECRET},
        )
    )
    yield await pool.client.sessions.wait(made.id, "ready")
    await pool.client.sessions.stop(made.id)
    async with asyncio.timeout(PATIENCE_S):
        while await pool.client.sessions.list():
            await asyncio.sleep(0.05)


async def answered(
    session: aiohttp.ClientSession, method: str, path: str, body: object = None
) -> tuple[int, str]:
    """The status, and what is said; of streams, what is said first."""
    limit = aiohttp.ClientTimeout(total=PATIENCE_S)
    async with session.request(method, path, json=body, timeout=limit, allow_redirects=False) as answer:
        if answer.content_type == "text/event-stream":
            return answer.status, (await answer.content.readuntil(b"\n\n")).decode()
        return answer.status, await answer.text()


def code_of(problem: str) -> str:
    """Of a refusal; what differs otherwise is the id, and the number of the request."""
    return str(msgspec.json.decode(problem)["code"])


async def by_tls(pool: ThrowawayPool, person: aiohttp.ClientSession, job: str, directory: Path) -> bytes:
    """What the bytes of a service answer to a program that shows a certificate of this person."""
    key, request = make_request("owner")
    status, said = await answered(person, "POST", "/v2/service-certificates", {"request": request.decode()})
    assert 200 == status, said
    made = msgspec.json.decode(said, type=ServiceCertificate)
    assert made.expires.timestamp() <= time.time() + 600, "it ends with the token"
    shown = directory / "shown.pem"
    shown.write_bytes(made.certificate.encode() + key)
    context = ssl.create_default_context(cadata=made.authority)
    context.load_cert_chain(shown)
    port = int((pool.home / "gateway" / "services_tls_port").read_text())
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", port, ssl=context, server_hostname=f"raw-{job.replace('.', '-')}.tcp.localhost"
    )
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE_S)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def test_with_a_token_of_somebody_else(
    pool: ThrowawayPool, theirs: SessionView, tmp_path: Path
) -> None:
    """Routes are those of the catalogue, so that a new one has to be thought of here."""
    job = theirs.scheduler.job
    queue = await pool.client.tasks.create(TaskPlan(), [f"echo {SECRET}".encode()])
    address = f"http://127.0.0.1:{(pool.home / 'gateway' / 'port').read_text()}"
    own = {"Authorization": f"Bearer {own_token(pool)}"}
    async with asyncio.timeout(PATIENCE_S), aiohttp.ClientSession(address, headers=own) as owner:
        while 404 == (await answered(owner, "GET", f"/v2/jobs/{job}"))[0]:
            await asyncio.sleep(0.05)  # the tables of the gateway follow what is recorded
    async with HERE.serving(life_s=600) as issuer:
        headers = {"Authorization": f"Bearer {issuer.token('ada', POOL)}"}
        async with aiohttp.ClientSession(address, headers=headers, middlewares=(patiently,)) as ada:
            wrong: list[tuple[str, int, str]] = []
            for each in ROUTES:
                name = f"{each.method} {each.path}"
                if not (match := re.match(r"/v2/(job|session|task-queue)s/\{id\}", each.path)):
                    continue
                own, of = {"session": theirs.id, "job": job, "task-queue": queue.id}, match[1]
                victim, nobody = (
                    each.path.replace("{id}", ids[of]).replace("{path}", "out").replace("{task}", "1")
                    for ids in (own, NOBODY)
                )
                status, said = await answered(ada, each.method, victim, BODIES.get(name))
                assert SECRET not in said, name
                if name in KNOWN_TO_ALL:
                    # It runs, so that nothing is to be said of how it would be matched.
                    wrong += [(name, status, said)] if status >= 300 and status != 409 else []
                    continue
                wrong += [(name, status, said)] if status not in {403, 404} else []
                if of != "job":
                    guessed, other = await answered(ada, each.method, nobody, BODIES.get(name))
                    assert (guessed, code_of(other)) == (status, code_of(said)), name
            assert [] == wrong
            for path in (f"/jobs/{job}/web/", f"/jobs/{job}/web/../web/", f"/jobs/{NOBODY['job']}/web/"):
                status, said = await answered(ada, "GET", path)
                assert status in {400, 403, 404}, (path, status, said)
            for path in ("/v2/services", "/v2/sessions", "/v2/task-queues"):
                status, said = await answered(ada, "GET", path)
                found = theirs.id in said or job in said or queue.id in said
                assert (200, False) == (status, found), (path, said)
            upgrade = {"Upgrade": "kettle-stream", "Connection": "Upgrade"}
            async with ada.get(f"/v2/jobs/{job}/services/web/connect", headers=upgrade) as answer:
                assert 403 == answer.status
            assert b"" == await by_tls(pool, ada, job, tmp_path)
            for action in ("hold", "release", "remove", "vacate", "suspend", "continue"):
                status, said = await answered(ada, "POST", f"/v2/jobs:{action}", {"ids": [job]})
                assert status >= 400 or f'"{job}' in said, (action, said)
    kept = await pool.client.tasks.show(queue.id)
    assert ("closed", 1) == (kept.state, kept.waiting)
    await pool.client.tasks.cancel(queue.id)
    shown = await pool.client.sessions.show(theirs.id)
    assert ("ready", 0, []) == (shown.state, shown.restarts, shown.target.shared_with)
    (ad,) = await pool.client.jobs(select(job), projection=["JobStatus", "JobPrio", "NumJobStarts"])
    assert (2, 1) == (ad["JobStatus"], ad["NumJobStarts"])
    assert 3 != ad.get("JobPrio")
