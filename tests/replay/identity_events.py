"""
Everything that iam ever records, done by people and machines to the iam of a pool; the renewal of a machine's credential, which
is due after days, is decided without one.
"""

import asyncio
import signal
from pathlib import Path
from typing import Final

import aiohttp

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.client import select
from kettle.client.iam_http import IamAddress, IamHttp
from kettle.client.key_values import KeyValueClient
from kettle.client.token_requests import TokenRequestHttp
from kettle.pool.personal_settings import Value
from kettle.testing.throwaway_pool import ThrowawayPool
from kettle_services.iam.domain import machine_grants
from kettle_services.iam.domain.state import Register
from kettle_wire.commands.iam import QueryAudit
from kettle_wire.events.iam import Grant, IdentityEvent, WorkerJoined

JOIN: Final = "urn:kettle:params:oauth:grant-type:join-token"
_WITH_TOKEN: Final = """\
executable = /bin/true
transfer_executable = false
request_memory = 16
request_disk = 1024
use_oauth_services = kettle
queue
"""
_ISSUERS: Final = "issuers = "
_AT: Final = 1_795_651_200.0
_SOON_S: Final = 10.0
"""So long lives what is used before it ends: longer than a busy machine pauses, and shorter than the life that is recorded."""


def settings(place: Path) -> dict[str, dict[str, Value]]:
    """The tables of such a pool, with the files that they name."""
    account = KeyPair.new(Kind.ACCOUNT)
    (place / "workers.nk").write_text(account.seed)
    (place / "rules.map").write_text("SCITOKENS /https:..cms.example,.*/ cms\n")
    iam: dict[str, Value] = {
        "workers_account": account.public,
        "workers_signing_key": str(place / "workers.nk"),
        "housekeeping": 0.1,
        "join_tokens_kept": 0.1,
        "token_request_wait": _SOON_S,
        "job_token_lifetime": 1,
        "issuers": {"https://cms.example": ["https://pool.example"]},
    }
    return {"iam": iam, "authorization": {"map_files": [str(place / "rules.map")]}}


def renewed() -> list[tuple[str, IdentityEvent]]:
    """A person lets a machine in, which renews its credential in the second half of its life."""
    joined = WorkerJoined(
        worker="laptop", key="U" + "A" * 55, owner="ada", token="0123456789ab", expires=_AT + 100.0, at=_AT,
        grant=Grant(names=("user:ada",), tokens=()),
    )  # fmt: skip
    register = Register()
    register.apply("worker/laptop", joined)
    _, changes = machine_grants.renewed(register, "laptop", lifetime=100.0, now=_AT + 60.0)
    return [("worker/laptop", joined), *changes]


async def happen(pool: ThrowawayPool) -> None:
    """Whatever people and machines do; what ends by itself ends soon."""
    iam = pool.client.iam
    port = (pool.home / "iam" / "port").read_text()
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as http:

        async def post(path: str, **form: str) -> None:
            async with http.post(path, data=form) as answer:
                await answer.read()

        async def join(token: str, name: str, **more: str) -> None:
            key = KeyPair.new(Kind.USER).public
            await post("/v1/token", grant_type=JOIN, join_token=token, name=name, key=key, **more)

        await iam.create_join_token(owner="ada", lifetime=1.0)
        made = await iam.create_join_token(owner="ada", max_uses=2)
        await join(made.token, "n1")
        await join(made.token, "n2", owner="bob")
        await iam.remove_worker("n1")
        withdrawn = await iam.create_join_token()
        await iam.revoke_join_token(withdrawn.made.token)
        await iam.ban("user:eve", reason="mines coins", lifetime=0.5)
        await iam.ban("issuer:https://rogue.example")
        secret = await iam.register_client("robot", owner="ada", scopes=["condor:/WRITE"], exchanges=True)
        robot = {"grant_type": "client_credentials", "client_id": "robot"}
        await post("/v1/token", client_secret=secret, **robot)
        await post("/v1/token", client_secret="wrong", **robot)
        await iam.remove_client("robot")
        session = await iam.open_session(note="laptop")
        await post("/v1/token", grant_type="refresh_token", refresh_token=session.token)
        await iam.revoke_token(session.made.session)
        token = await iam.issue_token(lifetime=_SOON_S)
        await post("/v1/revoke", token=token.token)
    await _ask_for_tokens(pool, IamHttp(IamAddress.of(f"http://127.0.0.1:{port}")))
    await iam.store_credential("box", "a-token", handle="mine")
    await iam.remove_credential("box", handle="mine")
    await _keep_values(KeyValueClient(pool.client.requests))
    job = await pool.client.submit(_WITH_TOKEN, cwd=pool.home)
    await pool.client.wait(select(job.cluster))
    status, _, wrong = await pool.kettle("userprio", "--setfactor", "eve", "7")
    assert status == 0, wrong
    while not (await iam.audit(QueryAudit(what="administrator"))).acts:
        await asyncio.sleep(0.05)
    file = pool.home / "kettle.toml"
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(line for line in lines if not line.startswith(_ISSUERS)))
    killed = pool.kill("iam", signal.SIGKILL)  # the next one reads that the issuer is none any more
    await pool.restarted("iam", after=killed)


async def _ask_for_tokens(pool: ThrowawayPool, http: IamHttp) -> None:
    requests = pool.client.token_requests
    await requests.fetch(levels=["READ"], lifetime=60)
    await requests.auto_approve("127.0.0.0/8", lifetime=1)
    await asyncio.to_thread(TokenRequestHttp(http).request, client="n3-1", levels=["ADVERTISE_STARTD"])
    asked = await requests.request(client="n4-2", identity="ada@example.org", levels=["READ"])
    await requests.approve(next(each for each in await requests.waiting() if each.client == "n4-2"))
    await requests.collect(asked)


async def _keep_values(values: KeyValueClient) -> None:
    await values.set("colour", b"blue")
    await values.remove("colour")
