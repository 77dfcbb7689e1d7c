"""
An access point that has joined vouches for its people: the server believes it about its own queue and about nothing else, and stops
to believe it when it has left.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.errors import AuthorizationError, Error

from kettle.auth.bus_permissions import people_of
from kettle.auth.private_files import write_private
from kettle.auth.trust.jwts import encode
from kettle.auth.trust.keys import KeyPair, Kind, TrustError
from kettle.auth.trust.pool import AccessPoint, PoolTrust
from kettle.auth.trust.server import PROBE, Statements
from kettle.bus.credentials import GUEST, Credential
from kettle.embedded import EmbeddedNats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.servers.embedded import server_directory
from kettle_wire.commands.catalogue import ENDPOINTS
from kettle_wire.identity import bearer, daemon, user
from kettle_wire.subjects import Subjects

SUBJECTS = Subjects("pool")
ADA = user("ada")


class Trusted:
    """A pool with the access point ap1."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.trust = PoolTrust(directory / "trust", SUBJECTS)
        self.key = KeyPair.new(Kind.ACCOUNT)
        self.trust.keep_access_points({"ap1": AccessPoint(self.key.public)})

    def statements(self) -> Statements:
        return self.trust.statements()

    def credentials(self, name: str) -> Path:
        key = KeyPair.new(Kind.USER)
        jwt = self.person(key) if name == "ada" else self.trust.service(name, key.public)
        return write_private(self.directory / f"{name}.creds", Credential(key.seed, jwt).text())

    def person(self, key: KeyPair, **more: object) -> str:
        nats = {
            "type": "user",
            "version": 2,
            "issuer_account": self.trust.people_account,
            "tags": [GUEST],
            **more,
        }
        return encode(self.key, key.public, nats, name="ada", issued=int(time.time()))

    def probe(self) -> str:
        return str(self.credentials(PROBE))

    def teller(self) -> Credential:
        return self.trust.teller()


@pytest_asyncio.fixture(loop_scope="function")
async def pool() -> AsyncIterator[tuple[EmbeddedNats, Trusted]]:
    with server_directory() as directory:
        trust = Trusted(directory)
        async with EmbeddedNats(directory / "nats", trust=trust) as server:
            yield server, trust


async def connected(server: EmbeddedNats, credentials: Path, said: list[str]) -> Client:
    async def note(error: Exception) -> None:
        said.append(str(error))

    client = Client()
    try:
        await client.connect(
            server.url,
            user_credentials=str(credentials),
            inbox_prefix=ADA.inbox_at("ap1").encode(),
            error_cb=note,
            connect_timeout=int(PATIENCE_S),
            allow_reconnect=False,
        )
    except BaseException:
        await client.close()
        raise
    return client


async def test_its_people_have_its_queue_and_no_other(pool: tuple[EmbeddedNats, Trusted]) -> None:
    """
    They may ask its schedd and shadow and who answers everybody, but no other queue, no iam, no master, and under no other name.
    """
    server, trust = pool
    said: list[str] = []
    client = await connected(server, trust.credentials("ada"), said)
    try:
        allowed = [
            SUBJECTS.command("schedd", "ap1", "submit", ADA.token),
            SUBJECTS.command("collector", "collector", "query_ads", ADA.token),
            SUBJECTS.command("master", "ap1", "control", ADA.token),
        ]
        closed = [
            SUBJECTS.command("schedd", "ap2", "submit", ADA.token),
            SUBJECTS.command("schedd", "schedd", "submit", ADA.token),
            SUBJECTS.command("iam", "iam", "issue_token", ADA.token),
            SUBJECTS.command("gateway", "gateway", "make_login_link", ADA.token),
            SUBJECTS.command("gateway", "gateway", "query_address", ADA.token),
            SUBJECTS.command("master", "server", "control", ADA.token),
            SUBJECTS.command("schedd", "ap1", "submit", user("bob").token),
            SUBJECTS.command("schedd", "ap1", "report", daemon("shadow", "ap1").token),
            SUBJECTS.events("schedd.ap1"),
        ]
        for subject in [*allowed, *closed]:
            await client.publish(subject, b"")
        async with asyncio.timeout(PATIENCE_S):
            while len(said) < len(closed):
                await client.flush()
        refused = " ".join(said).lower()
        assert [] == [subject for subject in closed if f'"{subject.lower()}"' not in refused]
        assert [] == [subject for subject in allowed if f'"{subject.lower()}"' in refused]
    finally:
        await client.close()


async def test_its_people_hear_no_answers_to_others_of_their_name(
    pool: tuple[EmbeddedNats, Trusted],
) -> None:
    """
    Root of the machine can say of anybody that he is ada, and hears what ada gets there; not what ada of the pool gets, or of
    another access point.
    """
    server, trust = pool
    said: list[str] = []
    client = await connected(server, trust.credentials("ada"), said)
    try:
        closed = [ADA.inbox, ADA.inbox_at("ap2"), bearer("ada").inbox, "_INBOX.a-ap2", "_INBOX.*", "_INBOX"]
        for subject in closed:
            await client.subscribe(f"{subject}.>")  # pyright: ignore[reportUnknownMemberType]
        async with asyncio.timeout(PATIENCE_S):
            while len(said) < len(closed):
                await client.flush()
        heard = await client.subscribe(f"{ADA.inbox_at('ap1')}.>")  # pyright: ignore[reportUnknownMemberType]
        await client.flush()
        assert len(closed) == len(said), said
        await heard.unsubscribe()
    finally:
        await client.close()


def test_what_its_people_may_ask_the_pool_is_declared() -> None:
    """
    A command that is new, or open to more people, is closed to them until it is written here, too: gateway and iam take the caller's
    name for the person.
    """
    publish, _ = people_of("ap1", SUBJECTS, ADA)
    own = {SUBJECTS.command(each.role, "ap1", each.verb, ADA.token): each for each in ENDPOINTS}
    of_all = {SUBJECTS.commands_by(ADA.token, each.role, each.verb): each for each in ENDPOINTS}
    assert {"schedd", "shadow", "master"} == {own[each].role for each in publish if each in own}
    assert (
        "accounting query_history, accounting query_progress, accounting query_rights, accounting query_usage, accounting report_usage, "
        "collector query_ads, collector query_rights, "
        "negotiator query_priorities, negotiator query_rights, negotiator why, "
        "startd close_session, startd exchange, startd open_session, startd peek, startd query_rights"
    ) == ", ".join(sorted(f"{of_all[each].role} {of_all[each].verb}" for each in publish if each in of_all))


async def test_it_gives_nobody_more_rights(pool: tuple[EmbeddedNats, Trusted]) -> None:
    """A statement with permissions of its own, or for the account of the services, is not believed."""
    server, trust = pool
    key = KeyPair.new(Kind.USER)
    more = {"pub": {"allow": [">"]}, "sub": {"allow": [">"]}}
    for jwt in (trust.person(key, **more), trust.person(key, issuer_account=_pool(trust))):
        path = write_private(trust.directory / "forged.creds", Credential(key.seed, jwt).text())
        with pytest.raises((AuthorizationError, Error)):
            await connected(server, path, [])


def test_it_takes_no_key_of_others(tmp_path: Path) -> None:
    """A key that signs for others, here or at another access point, would give them other rights."""
    trust = PoolTrust(tmp_path, SUBJECTS)
    trust.statements()
    administrators = KeyPair((tmp_path / "sign-administrator.nk").read_text()).public
    own = AccessPoint(KeyPair.new(Kind.ACCOUNT).public)
    for wanted in ({"ap1": AccessPoint(administrators)}, {"ap1": own, "ap2": own}):
        with pytest.raises(TrustError, match="is one that signs for others"):
            trust.keep_access_points(wanted)
    assert {} == trust.access_points()


async def test_who_has_left_is_not_believed(pool: tuple[EmbeddedNats, Trusted]) -> None:
    """Its people are disconnected, and cannot come back."""
    server, trust = pool
    credentials = trust.credentials("ada")
    client = await connected(server, credentials, [])
    trust.trust.keep_access_points({})
    server.trust_again()
    async with asyncio.timeout(PATIENCE_S):
        while not client.is_closed:
            await asyncio.sleep(0.01)
    with pytest.raises((AuthorizationError, Error)):
        await connected(server, credentials, [])


def _pool(trust: Trusted) -> str:
    return KeyPair((trust.directory / "trust/account-POOL.nk").read_text()).public
