"""People who come onto the bus with a token of an issuer that the pool trusts."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from tests.integration.iam.gate import Gate, gate_on

from kettle.auth.trust.callout import Question
from kettle.bus.nats import NatsBus
from kettle.bus.ports import Bus, NotAcceptedError, RefusedError
from kettle.client.connections.pool_connection import connect_pool
from kettle.client.connections.pool_file import PoolFile, login_name
from kettle.eventsourcing.log import Log
from kettle.eventsourcing.shard import Shard
from kettle.runtime import Runtime, shard_ownership
from kettle.runtime.settings import OwnerSettings
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, hosted
from kettle_services.iam import wiring
from kettle_services.iam.people.heard_questions import Waiting
from kettle_services.iam.wiring import serve
from kettle_wire.commands.iam import OPEN_SESSION, WHO_AM_I, BeginSession, WhoAmI
from kettle_wire.identity import bearer

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


async def test_who_has_a_token_speaks_as_whom_the_rules_make_of_it(gate: Gate) -> None:
    """A command arrives, its answer too, and the service hears the owner's name."""
    async with gate.bus(gate.token("ada")) as bus:
        said = await bus.call(WHO_AM_I, "iam", WhoAmI())
    assert "ada" == said.subject


async def test_a_token_that_only_reads_sends_no_commands(gate: Gate) -> None:
    """The server itself refuses the subject."""
    async with gate.bus(gate.token("ada", scope="condor:/READ")) as bus:
        assert "ada" == (await bus.call(WHO_AM_I, "iam", WhoAmI())).subject
        with pytest.raises(RefusedError, match="may not publish"):
            await bus.call(OPEN_SESSION, "iam", BeginSession(id="1", hash="0" * 64))


async def test_who_has_the_next_token_outlasts_the_end_of_one(gate: Gate) -> None:
    """
    The server ends the connection with the token; it is made again with the next one, and what is asked then is answered.
    """
    shown, back = [gate.token("ada", exp=int(time.time()) + 8)], asyncio.Event()
    async with NatsBus.connect(
        gate.server.url,
        subjects=gate.subjects,
        identity=bearer("ada"),
        credentials=gate.sentinel,
        token=lambda: shown[-1],
        patience=PATIENCE_S,
    ) as bus:
        shown.append(gate.token("ada"))
        bus.on_return(back.set)
        async with asyncio.timeout(PATIENCE_S):
            await back.wait()
        assert "ada" == (await bus.call(WHO_AM_I, "iam", WhoAmI(), deadline=PATIENCE_S)).subject


async def test_a_token_for_nothing_lets_nobody_in(gate: Gate) -> None:
    """Its scopes are for something else; who asks is told so."""
    with pytest.raises(NotAcceptedError):
        async with gate.bus(gate.token("ada", scope="storage.read:/")):
            pass
    status, known = await gate.get("/v1/whoami", gate.token("ada", scope="storage.read:/"))
    assert (200, "ada", []) == (status, known["subject"], known.get("levels", []))


async def test_a_token_of_the_pools_own_ends_with_its_session(gate: Gate) -> None:
    """It names who asked for it, needs no rule, and is over as soon as the session is from which it came."""
    async with gate.administrator() as iam:
        opened = await iam.open_session()
        status, made = await gate.post(
            "/v1/token", {"grant_type": "refresh_token", "refresh_token": opened.token}
        )
        assert 200 == status
        token = made["access_token"]
        async with gate.bus(token, login_name()) as bus:
            assert login_name() == (await bus.call(WHO_AM_I, "iam", WhoAmI())).subject
        await iam.revoke_token(opened.made.session)
    assert "token.revoked" == (await gate.get("/v1/whoami", token))[1]["code"]
    with pytest.raises(NotAcceptedError):
        async with gate.bus(token, login_name()):
            pass


async def test_while_iam_is_away_people_wait_and_connections_stay(backend: Backend, tmp_path: Path) -> None:
    """Who comes meanwhile is let in at most two seconds after it is back, and a moment."""
    async with gate_on(backend, tmp_path, RULES, sign_in_s=2.0) as gate:
        (file := tmp_path / "token").write_text(gate.token("ada"))
        pool = PoolFile(
            pool=gate.settings.pool,
            nats_url=gate.server.url,
            credentials=gate.sentinel,
            iam_url=gate.url,
            token=str(file),
            user="ada",
        )
        file.chmod(0o600)
        async with gate.bus(gate.token("ada")) as before:
            await gate.stop()

            async def come() -> None:
                async with connect_pool(pool, PATIENCE_S):
                    pass

            coming = asyncio.create_task(come())
            await asyncio.sleep(1.0)  # it has asked, and nobody has answered
            assert not coming.done()
            assert before.connected
            await gate.start()
            await coming
            assert "ada" == (await before.call(WHO_AM_I, "iam", WhoAmI())).subject


async def test_who_comes_while_iam_waits_for_its_shard_is_not_asked_to_come_again(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The question is heard by then, and answered as soon as iam can."""
    begun, asked = asyncio.Event(), asyncio.Event()
    own, put = shard_ownership.own_shard, Waiting.put

    def seen(waiting: Waiting, question: Question, reply: str) -> bool:
        asked.set()
        return put(waiting, question, reply)

    async def slowly(rt: Runtime, settings: OwnerSettings, bus: Bus, log: Log, name: str) -> Shard | None:
        begun.set()
        await asked.wait()
        return await own(rt, settings, bus, log, name)

    async with gate_on(backend, tmp_path, RULES) as gate:
        await gate.stop()
        monkeypatch.setattr(wiring, "own_shard", slowly)
        monkeypatch.setattr(Waiting, "put", seen)
        starting = asyncio.create_task(gate.start())
        await begun.wait()
        async with gate.bus(gate.token("ada")) as bus:
            assert bus.connected
        await starting


async def test_one_that_stands_by_hears_who_comes_and_answers_when_it_takes_over(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then it leaves the answers to the one in charge, which a second question does not disturb."""
    heard: dict[int, set[Waiting]] = {}
    both, put = asyncio.Event(), Waiting.put

    def seen(waiting: Waiting, question: Question, reply: str) -> bool:
        hearers = heard.setdefault(question.connection, set())
        hearers.add(waiting)
        if len(hearers) > 1:
            both.set()
        return put(waiting, question, reply)

    monkeypatch.setattr(Waiting, "put", seen)
    async with gate_on(backend, tmp_path, RULES) as gate, hosted("iam", gate.settings, serve):
        async with gate.bus(gate.token("ada")) as bus:
            await both.wait()
            await gate.stop()
            assert bus.connected
        async with gate.bus(gate.token("bob"), "bob") as bus:
            assert bus.connected
