"""Tokens of programs of HTCondor: fetched, asked for and approved, over bus and HTTP and by the commands."""

import asyncio
import json
import os
import re
import socket
import sys
import time
from asyncio.subprocess import Process
from pathlib import Path

import pytest

from kettle.auth.idtokens.checking import IdToken, verify
from kettle.auth.idtokens.pool_key import read_key, signing_secret
from kettle.client.connections.pool_connection import ConnectedTransport
from kettle.client.connections.pool_file import PoolFile, login_name
from kettle.client.connections.transport import Requests
from kettle.client.errors import CommandRefusedError
from kettle.client.iam_http import IamAddress, IamHttp
from kettle.client.token_requests import OpenRequest, TokenRequestClient, TokenRequestHttp
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend
from kettle_wire.identity import user

from .conftest import Office, office_on

RUN = "import sys; from kettle_services.condor.start import command; command(sys.argv.pop(1))"
ME = f"{login_name()}@{socket.gethostname()}"


@pytest.fixture(autouse=True)
def key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the pool keeps its key, for every account that runs the tests."""
    monkeypatch.setenv("_condor_SEC_PASSWORD_DIRECTORY", str(tmp_path / "passwords.d"))
    monkeypatch.setenv("_condor_TRUST_DOMAIN", "pool.example.org")
    return tmp_path / "passwords.d" / "POOL"


def requests_of(office: Office) -> TokenRequestClient:
    pool = PoolFile(pool=office.settings.pool, nats_url=office.settings.nats_url)
    return TokenRequestClient(Requests(ConnectedTransport(office.bus, office.bus, patience=PATIENCE_S), pool))


def http(office: Office) -> TokenRequestHttp:
    return TokenRequestHttp(IamHttp(IamAddress.of(office.url)))


def believed(token: str, key: Path) -> IdToken:
    secrets = {"POOL": signing_secret("POOL", read_key(key))}
    return verify(token, "pool.example.org", secrets, time.time())


async def recorded(office: Office) -> str:
    frames = [frame async for frame in office.backend.log.read("identity")]
    return str(frames)


async def test_a_token_is_fetched_for_oneself(office: Office, key: Path) -> None:
    """Good for READ and WRITE; an administrator may have another level; no token is recorded."""
    asking = requests_of(office)
    made = await asking.fetch(lifetime=60)
    token = believed(made.token, key)
    assert (ME, made.id, frozenset({"READ", "WRITE"})) == (token.identity, token.id, token.levels)
    assert token.issued + 60 == token.expires
    more = believed((await asking.fetch(levels=["ADMINISTRATOR"])).token, key)
    assert frozenset({"ADMINISTRATOR"}) == more.levels
    with pytest.raises(CommandRefusedError, match="the pool has no key nosuch"):
        await asking.fetch(key="nosuch")
    acts = await office.audit("token.issued")
    assert [f"got the access token {made.id} for {ME} (fetch): condor:/READ condor:/WRITE"] == [
        act.sentence for act in acts if made.id in act.sentence
    ]
    log = await recorded(office)
    assert made.id in log
    assert made.token not in log
    assert made.token.rpartition(".")[2] not in log


async def test_nobody_fetches_more_than_he_may_give(backend: Backend, tmp_path: Path) -> None:
    """Who is no administrator gets READ and WRITE, sees and approves what is his, and nothing else."""
    async with office_on(backend, tmp_path) as office, backend.bus(user("eve")) as bus:
        pool = PoolFile(pool=office.settings.pool, nats_url=office.settings.nats_url)
        eve = TokenRequestClient(Requests(ConnectedTransport(bus, bus, patience=PATIENCE_S), pool))
        with pytest.raises(CommandRefusedError, match="ADMINISTRATOR"):
            await eve.fetch(levels=["ADMINISTRATOR"])
        own = f"eve@{socket.gethostname()}"
        await eve.request(client="a-1", identity="root@pool.example.org")
        await eve.request(client="a-2", identity=own)
        await eve.request(client="a-3", identity=own, levels=["READ"])
        refused = len(await office.audit("access.denied"))
        unlimited, reading = await eve.waiting()
        assert refused == len(await office.audit("access.denied"))
        assert ["a-2", "a-3"] == [unlimited.client, reading.client]
        with pytest.raises(CommandRefusedError, match="one with no limit is given by an administrator"):
            await eve.approve(unlimited)
        await eve.approve(reading)
        everything = await requests_of(office).waiting()
        assert ["a-1", "a-2"] == [each.client for each in everything]
        with pytest.raises(CommandRefusedError, match=r"is for root@pool\.example\.org, and you are eve@"):
            await eve.approve(everything[0])
        with pytest.raises(CommandRefusedError):
            await eve.auto_approve("127.0.0.0/8", lifetime=60)


async def test_who_has_nothing_asks_over_http(office: Office, key: Path) -> None:
    """The token is given to who has the secret, once it is approved; neither of them is in the record."""
    asking, administrator = http(office), requests_of(office)
    request = await asyncio.to_thread(
        asking.request, client="n1-7", identity="ada@pool.example.org", levels=["READ"], lifetime=60
    )
    assert "" == await asyncio.to_thread(asking.collect, request)
    [shown] = await administrator.waiting()
    assert ("n1-7", "127.0.0.1", "", 60) == (shown.client, shown.address, shown.requester, shown.lifetime)
    await administrator.approve(shown)
    token = await asyncio.to_thread(asking.collect, request)
    assert token == await asyncio.to_thread(asking.collect, request)
    found = believed(token, key)
    assert ("ada@pool.example.org", frozenset({"READ"})) == (found.identity, found.levels)
    guessed = OpenRequest(request.request, "x" * 43, request.expires)
    with pytest.raises(CommandRefusedError) as caught:
        await asyncio.to_thread(asking.collect, guessed)
    assert "tokenrequest.unknown" == caught.value.code
    [alarm] = await office.audit("access.denied")
    assert (True, f"request {request.request}") == (alarm.alarm, alarm.who)
    log = await recorded(office)
    assert request.secret not in log
    assert token.rpartition(".")[2] not in log
    assert ["tokenrequest.made", "tokenrequest.approved", "tokenrequest.collected"] == [
        act.what for act in await office.audit("tokenrequest")
    ]


async def test_daemons_of_a_network_need_no_person(office: Office, key: Path) -> None:
    """A rule approves what came a moment before it and what comes after it, and only what daemons ask for."""
    asking, administrator = http(office), requests_of(office)
    levels = ["ADVERTISE_STARTD"]
    before = await asyncio.to_thread(asking.request, client="n1-1", levels=levels)
    assert [before.request] == await administrator.auto_approve("127.0.0.0/8", lifetime=60)
    after = await asyncio.to_thread(asking.request, client="n2-2", levels=levels)
    more = await asyncio.to_thread(asking.request, client="n3-3", levels=["DAEMON"])
    for request in (before, after):
        found = believed(await asyncio.to_thread(asking.collect, request), key)
        assert ("condor@pool.example.org", frozenset(levels)) == (found.identity, found.levels)
    assert "" == await asyncio.to_thread(asking.collect, more)
    approvals = await office.audit("tokenrequest.approved")
    assert all(act.sentence.endswith("by the rule for 127.0.0.0/8") for act in approvals)


@pytest.mark.parametrize(
    ("form", "code"),
    [
        ({"client": "n1"}, "request.malformed"),
        ({"client": "n1", "secret_sha256": "0" * 64, "identity": "ada"}, "request.malformed"),
        ({"client": "n1", "secret_sha256": "0" * 64, "scope": "condor:/EVERYTHING"}, "tokenrequest.level"),
        ({"client": "n 1", "secret_sha256": "0" * 64}, "request.malformed"),
        ({"client": "n1", "secret_sha256": "0" * 64, "lifetime": "-1"}, "request.malformed"),
    ],
)
async def test_a_request_that_makes_no_sense_is_refused(
    office: Office, form: dict[str, str], code: str
) -> None:
    """With its code, and it leaves no trace."""
    status, answer = await office.post("/v1/token-requests", form)
    assert (400, code) == (status, answer["code"])
    assert [] == await office.audit("tokenrequest")


async def test_a_pool_may_take_no_requests(backend: Backend, tmp_path: Path) -> None:
    """Its administrator says so."""
    async with office_on(backend, tmp_path, token_requests=False) as office:
        status, answer = await office.post("/v1/token-requests", {"client": "n1", "secret_sha256": "0" * 64})
        assert (409, "tokenrequest.closed") == (status, answer["code"])


class Condor:
    """The commands, as they are typed on a machine of the pool."""

    def __init__(self, office: Office, home: Path) -> None:
        self._environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("KETTLE_")},
            "KETTLE_NATS_URL": office.settings.nats_url,
            "KETTLE_NATS_CREDENTIALS": office.settings.nats_credentials,
            "KETTLE_POOL": office.settings.pool,
            "KETTLE_HOME": str(home),
            "_condor_SEC_TOKEN_DIRECTORY": str(home / "tokens.d"),
        }

    async def begin(self, *words: str) -> Process:
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",
            "-c",
            RUN,
            *words,
            env=self._environ,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def __call__(self, *words: str, typed: str = "", status: int = 0) -> tuple[str, str]:
        process = await self.begin(*words)
        out, err = await process.communicate(typed.encode())
        assert status == process.returncode, (out + err).decode()
        return out.decode(), err.decode()


async def test_the_commands_say_what_those_of_htcondor_say(office: Office, key: Path, tmp_path: Path) -> None:
    """A number on standard error, the request as an ad, a question before the approval, then the token."""
    condor = Condor(office, tmp_path / "person")
    process = await condor.begin(
        "condor_token_request", "-pool", office.url, "-identity", "ada@pool.example.org", "-authz", "read"
    )
    assert process.stderr is not None
    said = (await process.stderr.readline()).decode()
    found = re.fullmatch(
        r"Token request enqueued\.  Ask an administrator to please approve request (\d{7})\.\n", said
    )
    assert found, said
    number = found[1]
    out, _ = await condor("condor_token_request_list")
    host = re.escape(socket.gethostname())
    assert re.fullmatch(
        'AuthenticatedIdentity = "unauthenticated@unmapped"\n'
        rf'ClientId = "{host}-\d+"\n'
        'LimitAuthorization = "READ"\n'
        'PeerLocation = "127.0.0.1"\n'
        'RequestedIdentity = "ada@pool.example.org"\n'
        rf'RequestId = "{number}"\n\n',
        out,
    ), out
    out, _ = await condor("condor_token_request_list", "-json", "-reqid", number)
    assert [number] == [ad["RequestId"] for ad in json.loads(out)]
    _, err = await condor("condor_token_request_approve", "-reqid", number, typed="no\n", status=1)
    assert "Request was NOT approved.\n" == err
    out, _ = await condor("condor_token_request_approve", "-reqid", number, typed="yes\n")
    assert out.endswith(f"To approve, please type 'yes'\nRequest {number} approved successfully.\n")
    token, rest = await process.communicate()
    assert (0, b"") == (process.returncode, rest)
    assert "ada@pool.example.org" == believed(token.decode().strip(), key).identity
    _, err = await condor("condor_token_request_list")
    assert "Remote daemon reports no requests pending.\n" == err
    _, err = await condor("condor_token_request_list", "-reqid", number, status=1)
    assert f"Remote daemon did not provide information for request ID {number}.\n" == err
    out, err = await condor(
        "condor_token_request_auto_approve", "-netblock", "192.0.2.0/26", "-lifetime", "600"
    )
    assert (
        "Successfully installed auto-approval rule for netblock 192.0.2.0/26 with lifetime of 0.17 hours\n"
        == out
    )
    assert "Remote daemon reports no un-approved requests pending.\n" == err


async def test_a_fetched_token_is_put_where_it_is_looked_for(
    office: Office, key: Path, tmp_path: Path
) -> None:
    """On standard output, or in the token directory, from where condor_token_list has it."""
    condor = Condor(office, tmp_path / "person")
    out, _ = await condor("condor_token_fetch", "-lifetime", "600", "-authz", "READ")
    assert (ME, frozenset({"READ"})) == (
        believed(out.strip(), key).identity,
        believed(out.strip(), key).levels,
    )
    assert ("", "") == await condor("condor_token_fetch", "-token", "mine", "-type", "schedd")
    listed, _ = await condor("condor_token_list")
    assert f'"sub":"{ME}"' in listed.replace("\\/", "/")
    _, err = await condor("condor_token_fetch", "-type", "scheddd", status=1)
    assert "ERROR: unrecognized daemon type: scheddd; do you mean schedd?\n" == err
    _, err = await condor("condor_token_request", "-pool", "http://pool.example.org", status=1)
    assert "it has to begin with https://" in err
