"""
What lets somebody in is withdrawn while that person is connected: the connection ends within a second, and no new one is made.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from nats.aio.client import Client
from nats.errors import Error
from tests.integration.iam.gate import WHO, Gate, gate_on

from kettle.auth.trust.files import key_in
from kettle.auth.trust.pool import Kind
from kettle.embedded import EmbeddedError, nats
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, hosted
from kettle_services.iam.wiring import serve
from kettle_wire.identity import Identity, bearer

RULES = """\
[[rules]]
when.issuer = '{issuer}'
when.subject = '/^([a-z]+)$/'
owner = '\\1'
"""


@pytest_asyncio.fixture
async def gate(backend: Backend, tmp_path: Path) -> AsyncIterator[Gate]:
    async with gate_on(backend, tmp_path, RULES) as made:
        yield made


class Connection:
    """One that does not come again by itself."""

    def __init__(self, client: Client, ended: asyncio.Event) -> None:
        self.client = client
        self._ended = ended

    @property
    def is_open(self) -> bool:
        return not self._ended.is_set()

    async def until_ended(self) -> None:
        """Wait until the server has ended it."""
        async with asyncio.timeout(PATIENCE_S):
            await self._ended.wait()


def connected(gate: Gate, token: str, owner: str = "ada") -> AbstractAsyncContextManager[Connection]:
    """Somebody with a token; raises nats.errors.Error if the server lets him not in."""
    return _connected(gate, gate.sentinel, bearer(owner), token=token)


def credentialed(gate: Gate, name: str) -> AbstractAsyncContextManager[Connection]:
    """Somebody of `WHO` with a credential of his own."""
    return _connected(gate, str(gate.server.credentials(name)), WHO[name][1])


@asynccontextmanager
async def _connected(
    gate: Gate, credentials: str, identity: Identity, *, token: str | None = None
) -> AsyncGenerator[Connection]:
    client, ended = Client(), asyncio.Event()

    async def note(*_: object) -> None:
        ended.set()

    async def heard(_error: Exception) -> None:
        pass

    try:
        await client.connect(
            gate.server.url,
            user_credentials=credentials,
            inbox_prefix=identity.inbox.encode(),
            disconnected_cb=note,
            error_cb=heard,
            connect_timeout=int(PATIENCE_S),
            allow_reconnect=False,
            token=token,
        )
        yield Connection(client, ended)
    finally:
        await client.close()


async def lets_in(gate: Gate, token: str) -> bool:
    try:
        async with connected(gate, token):
            return True
    except (Error, ConnectionError):
        return False


async def test_who_is_banned_is_gone_within_a_second_and_stays_out(gate: Gate) -> None:
    """Others stay; when the ban is lifted the same token lets in again."""
    token = gate.token("ada")
    async with (
        gate.administrator() as iam,
        connected(gate, token) as ada,
        connected(gate, gate.token("eve"), "eve") as eve,
    ):
        await iam.ban("user:ada", reason="mines coins")
        await ada.until_ended()
        assert not await lets_in(gate, token)
        assert eve.is_open
        status, problem = await gate.get("/v1/whoami", token)
        assert (403, "user.banned") == (status, problem["code"])
        assert "mines coins" in problem["detail"]
        await iam.unban("user:ada")
        assert await lets_in(gate, token)


async def test_people_stay_when_somebody_else_is_cut_off(gate: Gate) -> None:
    """
    Who came with a credential of his own is believed no more: the connections of those of whom the server has asked iam go on.
    """
    key = key_in(gate.server.credentials("bob"))
    assert key is not None
    async with connected(gate, gate.token("ada")) as ada, credentialed(gate, "bob") as bob:
        gate.members.revoke(Kind.PERSON, [key.public])
        gate.server.trust_again()
        await bob.until_ended()
        assert await lets_in(gate, gate.token("eve"))  # the server has done all by now that it does for that
        assert ada.is_open


async def test_a_server_that_cannot_be_told_reads_its_whole_configuration(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody who is cut off stays for that."""
    key = key_in(gate.server.credentials("bob"))
    assert key is not None

    async def tell(*_: object) -> None:
        raise EmbeddedError("it does not answer")

    monkeypatch.setattr(nats, "tell", tell)
    async with credentialed(gate, "bob") as bob:
        gate.members.revoke(Kind.PERSON, [key.public])
        gate.server.trust_again()
        await bob.until_ended()


async def test_a_withdrawn_token_is_good_for_nothing(gate: Gate) -> None:
    """One token by its id, and no other of the same person."""
    token, other = gate.token("ada", jti="lost"), gate.token("ada")
    async with (
        gate.administrator() as iam,
        connected(gate, token) as lost,
        connected(gate, other) as kept,
    ):
        await iam.revoke_token("lost")
        await lost.until_ended()
        assert kept.is_open
        assert not await lets_in(gate, token)


async def test_who_is_banned_by_group_or_whose_rule_is_gone(
    gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that changes is in force within a second; one that cannot be used leaves things as they are."""
    rules = Path(gate.settings.authorization.rules)
    text = rules.read_text()
    async with (
        connected(gate, gate.token("ada", groups=["/guests"])) as guest,
        connected(gate, gate.token("eve"), "eve") as eve,
    ):
        rules.write_text(f"{text}\n[[bans]]\ngroup = '/guests'\n")
        await guest.until_ended()
        rules.write_text("[[rulez]]\n")
        async with asyncio.timeout(PATIENCE_S):
            while "rulez" not in caplog.text:
                await asyncio.sleep(0.01)
        await eve.client.flush()
        assert eve.is_open
        rules.write_text("")
        await eve.until_ended()


async def test_a_connection_ends_with_its_token(gate: Gate) -> None:
    """To the second, by the server itself."""
    async with connected(gate, gate.token("ada", exp=int(time.time()) + 6)) as ada:
        await ada.until_ended()


async def test_an_iam_that_was_restarted_forgets_nobody(backend: Backend, tmp_path: Path) -> None:
    """Connections outlive it; what it does not remember is asked again once something is withdrawn."""
    async with gate_on(backend, tmp_path, RULES) as gate:
        token = gate.token("ada")
        async with connected(gate, token) as ada:
            await gate.stop()
            await ada.client.flush()
            assert ada.is_open
            async with hosted("iam", gate.settings, serve), gate.administrator() as iam:
                await ada.client.flush()
                assert ada.is_open
                await iam.revoke_token(gate.id_of(token))
                await ada.until_ended()
                assert not await lets_in(gate, token)
