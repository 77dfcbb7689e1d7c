"""
A person whom no account of this machine stands for: a token of an issuer that is none of ours, and the pool's address, are all
that she has.
"""

import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path

import pytest
from tests.integration.iam.issuer import TokenIssuer, token_issuer

from kettle.accounts.lookup import own_name
from kettle.auth.idtokens.pool_key import scrambled
from kettle.client import Client, PoolUnreachableError, select
from kettle.pool.personal_settings import Tables
from kettle.testing.commands.running import KETTLE, execute, run
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers import selection
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_wire.codes import JobStatus
from kettle_wire.events import JobStarted
from kettle_wire.jobs import JobId

from .test_bindings import MODULES

SERVICES = ["collector", "negotiator", "schedd", "shadow", "startd", "accounting", "iam", "ce"]
AUDIENCE = "https://pool.example"
JOB = """
executable = /bin/sh
transfer_executable = false
arguments = "-c 'echo $(ClusterId)'"
output = out
queue
"""


class Elsewhere:
    """A home of hers on another machine, in which nothing is but what the test puts there."""

    def __init__(self, pool: ThrowawayPool, home: Path, place: Path, **variables: str) -> None:
        """`place`: the directory of the condor_* commands."""
        self._environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("KETTLE_", "_condor_", "BEARER_"))
        }
        self.address = f"http://127.0.0.1:{(pool.home / 'iam' / 'port').read_text()}"
        self._environ |= {"HOME": str(home), **variables}
        self._home = home
        self._place = place

    def knows_the_pool(self) -> None:
        """By its address alone."""
        self._environ["KETTLE_POOL_URL"] = self.address

    async def run(self, program: str, *words: str, status: int = 0) -> str:
        """What a program of ours prints, or complains of."""
        named = KETTLE if program == "kettle" else (str(self._place / program),)
        said = await run([*named, *words], self._home, self._environ)
        assert status == said.status, said
        return said.err if status else said.out

    async def uses(self, text: str) -> str:
        """What a program of hers prints, which uses the bindings."""
        environ = self._environ | {"PYTHONPATH": str(MODULES)}
        said = await execute([sys.executable, "-c", text], self._home, environ)
        assert 0 == said.status, said
        return said.out


def settings(issuer: TokenIssuer, directory: Path) -> Tables:
    """People of the issuer are called as it calls them."""
    rules = directory / "rules.toml"
    rules.write_text(RULES.replace("{issuer}", issuer.url))
    (routes := directory / "routes").write_text(ROUTES)
    return {
        "ce": {"routes": str(routes)},
        "master": {"daemon_list": SERVICES},
        "authorization": {"domain": "pool.example", "rules": str(rules)},
        "iam": {"issuers": {issuer.url: [AUDIENCE]}},
        "schedd": {
            "entrypoint": True,
            "route_jobs": "ToRoute is true",
            "vos": {"belle": {}},
            "queue_super_users": [own_name()],
        },
    }


RULES = """
[[rules]]
when.issuer = "{issuer}"
when.groups = "/wheel"
when.subject = '/^([a-z]+)$/'
owner = '\\1'
levels = ["ADMINISTRATOR"]

[[rules]]
when.issuer = "{issuer}"
when.subject = "pilots"
owner = "pilots"
vo = "belle"

[[rules]]
when.issuer = "{issuer}"
when.subject = '/^([a-z]+)$/'
owner = '\\1'
accounting_group = "group_physics"
vo = "physics"
"""
PILOT = """
executable = /bin/sleep
transfer_executable = false
+ToRoute = true
arguments = 600
queue
"""
ROUTES = """
JOB_ROUTER_ROUTE_NAMES = Here
JOB_ROUTER_ROUTE_Here @=end
    UNIVERSE vanilla
@end
"""
QUEUE = """
import htcondor2
print([ad["Owner"] for ad in htcondor2.Schedd().query(projection=["Owner"])])
"""


@pytest.mark.skipif(
    not selection.servers_are_ours(), reason="who may connect to servers of somebody else is theirs to say"
)
async def test_a_person_with_nothing_but_a_sign_in_and_the_address(tmp_path: Path, place: Path) -> None:
    """
    She signs in, and then all programs know her: a job goes there with its files and comes back; with a token of another file she is
    told why when she may not, and a ban reaches her and nobody else.
    """
    home = tmp_path / "ada"
    home.mkdir()
    async with (
        token_issuer() as issuer,
        throwaway_pool(tmp_path / "pool", settings=settings(issuer, tmp_path)) as pool,
    ):
        ada = Elsewhere(pool, home, place)
        issuer.expires_in = 0  # so that the next command renews it
        assert "are ada in the pool" in await ada.run("kettle", "login", "--pool", ada.address)
        assert AUDIENCE == issuer.audience
        issuer.expires_in = 600
        await ada.uses(QUEUE)
        assert 1 == issuer.refreshed
        (home / "job.sub").write_text(JOB)
        sent = await ada.run("kettle", "submit", "job.sub")
        cluster = sent.split("submitted to cluster ")[1].split(".")[0]
        assert "ada" in await ada.run("condor_q", cluster)
        assert "['ada']" in await ada.uses(QUEUE)
        shown = ("AccountingGroup", "x509UserProxyVOName", "AuthTokenSubject", "AuthTokenIssuer")
        assert f"group_physics.ada physics ada {issuer.url}" in await ada.run(
            "condor_q", cluster, "-af", *shown
        )
        (home / "route.sub").write_text(f"+ToRoute = true\n{JOB}")
        said = await ada.run("kettle", "submit", "route.sub", status=1)
        assert (
            "the VO physics is none of this entrypoint" in said,
            "/rules.toml:15: when issuer" in said,
        ) == (True, True), said
        await ada.run("kettle", "wait", cluster)
        await ada.run("condor_transfer_data", cluster)
        assert f"{cluster}\n" == (home / "out").read_text()
        assert "submitted to cluster" in await ada.run("condor_submit", "job.sub")
        assert "ada" in await ada.run("kettle", "whoami")
        for universe in ("local", "scheduler"):
            (home / "home.sub").write_text(f"universe = {universe}\n{JOB}")
            said = await ada.run("condor_submit", "home.sub", status=1)
            assert f"a token does not let you run jobs of the {universe} universe" in said

        factor = ("condor_userprio", "-setfactor", "ada@pool.example", "7")
        assert "not an administrator" in await ada.run(*factor, status=1)
        (wheel := home / "wheel").write_text(issuer.token("grace", AUDIENCE, groups=["/wheel"]))
        grace = Elsewhere(pool, home, place, BEARER_TOKEN_FILE=str(wheel))
        await grace.run(*factor)
        await grace.run("kettle", "audit")
        await grace.run("condor_reconfig")
        for command in ("iam.query_audit", "master.control"):
            assert "/rules.toml:" in await grace.run("kettle", "whoami", "--may", command)

        (token := home / "token").write_text(issuer.token("ada", AUDIENCE, exp=1))
        late = Elsewhere(pool, home, place, BEARER_TOKEN_FILE=str(token))
        said = await late.run("kettle", "q", status=1)
        assert "the token of BEARER_TOKEN_FILE (token.expired); get a new one: kettle login" in said
        await pool.client.iam.ban("user:ada", reason="mines coins")
        assert "mines coins" in await ada.run("kettle", "q", status=1)
        assert "mines coins" in await ada.run("condor_q", status=1)
        await withdrawn(pool, issuer, home, place)


async def withdrawn(pool: ThrowawayPool, issuer: TokenIssuer, home: Path, place: Path) -> None:
    """
    An issuer that is withdrawn while its jobs run: who comes with its tokens is refused, and the jobs that are there go on, also those that
    wait; an administrator removes them by their issuer.
    """
    (token := home / "pilots").write_text(issuer.token("pilots", AUDIENCE))
    pilots = Elsewhere(pool, home, place, BEARER_TOKEN_FILE=str(token))
    pilots.knows_the_pool()
    (home / "pilot.sub").write_text(PILOT)
    runs, waits = [
        int((await pilots.run("kettle", "submit", "pilot.sub")).split("to cluster ")[1].split(".")[0])
        for _ in range(2)
    ]
    await pilots.run("kettle", "hold", str(waits))
    await started(pool, runs)
    await pool.reconfigure({**pool.settings, "iam": {"issuers": {}}})
    said = await pilots.run("kettle", "submit", "pilot.sub", status=1)
    assert f"the issuer '{issuer.url}' is not trusted here" in said, said
    await pool.client.release(select(waits))
    ads = await pool.client.jobs(select(runs), projection=["JobStatus", "RouteName"])
    assert [(JobStatus.RUNNING, "Here")] == [(ad["JobStatus"], ad["RouteName"]) for ad in ads]
    await pool.client.remove(select(runs))  # there may be room for one
    await started(pool, waits)
    ours = f'AuthTokenIssuer == "{issuer.url}" && RouteName == "Here"'
    status, _, err = await pool.kettle("rm", "--constraint", ours)
    assert 0 == status, err
    async with asyncio.timeout(PATIENCE_S):
        for cluster in (runs, waits):
            await pool.client.wait(select(cluster))


async def started(pool: ThrowawayPool, cluster: int) -> None:
    """Wait until the one job of a cluster runs after all that has happened to it."""
    async with asyncio.timeout(PATIENCE_S), aclosing(pool.client.follow(JobId(cluster, 0))) as seen:
        async for each in seen:
            if isinstance(each.event, JobStarted):
                ads = await pool.client.jobs(select(cluster), projection=["JobStatus"])
                if ads[0]["JobStatus"] == JobStatus.RUNNING:
                    return


@pytest.mark.skipif(
    not selection.servers_are_ours(), reason="who may connect to servers of somebody else is theirs to say"
)
async def test_tokens_of_the_pools_key_and_a_ban_of_an_account(
    tmp_path: Path, place: Path, another: str
) -> None:
    """
    HTCondor's tokens let in whom they name; a ban reaches the account that somebody has on the pool's machine within a second.
    """
    keys, home = tmp_path / "keys", tmp_path / "bob"
    keys.mkdir(mode=0o700)
    home.mkdir()
    knobs = {
        "_condor_SEC_PASSWORD_DIRECTORY": str(keys),
        "_condor_TRUST_DOMAIN": "pool.example",
        "_condor_SEC_TOKEN_DIRECTORY": str(home / "tokens.d"),
    }
    key = keys / "POOL"
    key.write_bytes(scrambled(b"a secret of the pool"))
    key.chmod(0o600)
    accounts = tmp_path / "accounts"
    tables: Tables = {
        "master": {
            "daemon_list": ["collector", "schedd", "iam"],
            "accounts": [another],
            "accounts_directory": str(accounts),
        },
        "authorization": {"domain": "pool.example"},
    }
    async with throwaway_pool(tmp_path / "pool", settings=tables, environ={**os.environ, **knobs}) as pool:
        bob = Elsewhere(pool, home, place, **knobs)
        bob.knows_the_pool()
        await bob.run("condor_token_create", "-identity", "bob@pool.example", "-token", "pool")
        assert "bob" in await bob.run("kettle", "whoami")
        await bob.run(
            "condor_token_create", "-identity", "bob@pool.example", "-authz", "READ", "-token", "pool"
        )
        await bob.run("condor_q")
        refused_to_act = await bob.run("condor_rm", "1", status=1)
        assert "your token or key is limited to less; you come with the token of" in refused_to_act
        known = await bob.run("kettle", "whoami")
        assert ("WRITE" in known, "condor:/READ" in known) == (False, True)
        assert "is limited to READ" in await bob.run("kettle", "whoami", "--at", "schedd")
        await bob.run("kettle", "whoami", "--may", "schedd.submit", status=1)
        await bob.run("condor_ping", "READ")
        await bob.run("condor_ping", "-quiet", "WRITE", status=1)

        async with Client.connect(home=accounts / another) as theirs:
            await theirs.ads("Scheduler")
            await pool.client.iam.ban(f"user:{another}")
            async with asyncio.timeout(PATIENCE_S):
                while not await refused(accounts / another):
                    pass
        await pool.client.iam.unban(f"user:{another}")
        async with asyncio.timeout(PATIENCE_S):
            while await refused(accounts / another):
                pass


async def refused(home: Path) -> bool:
    """Whether somebody's account is not let in."""
    try:
        async with Client.connect(home=home, patience=5.0):
            return False
    except PoolUnreachableError as error:
        return "let you in" in str(error)
