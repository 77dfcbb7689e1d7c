"""Machines that people let in for their own jobs: how many, for how long, and what ends them."""

import asyncio
import base64
import time
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.bus.credentials import Credential
from kettle.bus.nats import NatsBus
from kettle.bus.ports import RefusedError
from kettle.client.errors import CommandRefusedError
from kettle.client.join_tokens import new_secret
from kettle.client.own_machines import OwnMachinesClient
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, eventually
from kettle_services.master.credential_renewal import keep_renewed
from kettle_wire.commands.own_machines import (
    CREATE_BEARERS_JOIN_TOKEN,
    RENEW_WORKER,
    CreateBearersJoinToken,
    RenewWorker,
)
from kettle_wire.iam_http import join_token
from kettle_wire.identity import user, worker
from kettle_wire.subjects import Subjects

from .conftest import Office, office_on

WEEK_S = 7 * 86_400.0


def key() -> str:
    """The public key of a new machine."""
    return KeyPair.new(Kind.USER).public


def expires(jwt: str) -> int:
    part = jwt.split(".")[1]
    claims = msgspec.json.decode(
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)), type=dict[str, object]
    )
    ends = claims["exp"]
    assert isinstance(ends, int)
    return ends


async def told_owners(office: Office) -> dict[str, bytes]:
    """Whose jobs alone machines take, as negotiators are told."""
    found: dict[str, bytes] = {}
    async with aclosing(office.bus.watch(Subjects(office.settings.pool).machine_owners)) as changes:
        async for change in changes:
            if change is None:
                break
            if change.value is not None:
                found[change.key] = change.value
    return found


def machines(office: Office, bus: NatsBus) -> OwnMachinesClient:
    return office.asked_by(bus).own_machines


async def names(office: Office) -> list[str]:
    return [each.worker for each in await office.administrator.workers()]


async def shown(bus: NatsBus, credential: str) -> str:
    """A join token of who shows this token."""
    secret, hash_ = new_secret()
    request = CreateBearersJoinToken(id=secret[:32], hash=hash_, credential=credential, max_uses=2)
    made = await bus.call(CREATE_BEARERS_JOIN_TOKEN, "iam", request)
    return join_token(made.token, secret, made.pin)


async def test_a_person_has_machines_of_his_own(office: Office) -> None:
    """They take his jobs only, end after a week, and there are no more of them than the pool permits."""
    async with office.backend.bus(user("bob")) as bus:
        bob = office.asked_by(bus)
        made = await bob.own_machines.create_join_token(max_uses=office.settings.machines_per_person)
        before = time.time()
        status, joined = await office.join(made.token, "laptop", key())
        assert (200, "bob", "bob") == (status, joined["owner"], joined["by"])
        assert before <= joined["expires"] - WEEK_S <= time.time()
        assert int(joined["expires"]) == expires(joined["jwt"])
        assert {"laptop": b"bob"} == await told_owners(office)
        with pytest.raises(CommandRefusedError, match="machines_per_person"):
            await bob.own_machines.create_join_token()
        with pytest.raises(CommandRefusedError, match="has not the level ADMINISTRATOR"):
            await bob.create_join_token(owner="ada")


async def test_people_see_and_remove_their_own_machines(office: Office) -> None:
    """And those that administrators have given them they see; of others' they hear nothing."""
    async with office.backend.bus(user("bob")) as bus, office.backend.bus(user("eve")) as other:
        bob, eve = machines(office, bus), machines(office, other)
        made = await bob.create_join_token(max_uses=2)
        await office.join(made.token, "laptop", key())
        given = await office.administrator.create_join_token(owner="bob")
        await office.join(given.token, "given", key())
        assert [("given", False), ("laptop", True)] == [
            (each.worker, each.own) for each in await bob.workers()
        ]
        assert [made.made.token] == [each.token for each in await bob.join_tokens()]
        assert ([], []) == (await eve.workers(), await eve.join_tokens())
        with pytest.raises(CommandRefusedError, match="no machine laptop has joined for the jobs of eve"):
            await eve.remove_worker("laptop")
        with pytest.raises(CommandRefusedError, match="eve has made no join token"):
            await eve.revoke_join_token(made.made.token)
        with pytest.raises(CommandRefusedError, match="bob has not let given in"):
            await bob.remove_worker("given")
        await bob.remove_worker("laptop")
        await bob.revoke_join_token(made.made.token)
        assert ["given"] == await names(office)
        assert "join.revoked" == (await office.join(made.token, "n3", key()))[1]["code"]
        [left] = await office.audit("worker.left")
        assert ("bob", "laptop") == (left.who, left.whom)


async def test_machines_of_who_is_banned_go(office: Office) -> None:
    """With nobody asking for it; the join tokens that were made are good no more."""
    async with office.backend.bus(user("bob")) as bus:
        made = await machines(office, bus).create_join_token(max_uses=2)
        await office.join(made.token, "laptop", key())
        await office.administrator.ban("user:bob", reason="has left")

        async def gone() -> bool:
            return not await names(office)

        await eventually(gone)
        assert "join.revoked" == (await office.join(made.token, "n2", key()))[1]["code"]


async def test_machines_go_with_the_token_that_let_them_in(office: Office) -> None:
    """
    One that is withdrawn, and the one of another session stays; who shows somebody else's or a job's has none.
    """
    async with office.backend.bus(user("bob")) as bus, office.backend.bus(user("eve")) as other:
        bob = office.asked_by(bus)
        lost, kept = await bob.issue_token(), await bob.open_session()
        _, renewed = await office.post(
            "/v1/token", {"grant_type": "refresh_token", "refresh_token": kept.token}
        )
        for name, token in (("by-lost", lost.token), ("by-session", renewed["access_token"])):
            assert 200 == (await office.join(await shown(bus, token), name, key()))[0]
        with pytest.raises(RefusedError, match="is not one of eve"):
            await shown(other, lost.token)
        reader = await bob.issue_token(scopes=["condor:/READ"])
        with pytest.raises(RefusedError, match="it takes one with the level WRITE"):
            await shown(bus, reader.token)

        async def only(*left: str) -> None:
            async def so() -> bool:
                return list(left) == await names(office)

            await eventually(so)

        await office.administrator.revoke_token(lost.id)
        await only("by-session")
        with pytest.raises(RefusedError, match="was withdrawn"):
            await shown(bus, lost.token)
        await bob.revoke_token(kept.made.session)
        await only()


async def test_the_token_that_lets_machines_in_is_nowhere(office: Office) -> None:
    """Neither events nor answers nor files have what the person has shown."""
    async with office.backend.bus(user("bob")) as bus:
        token = (await office.asked_by(bus).issue_token()).token
        await office.join(await shown(bus, token), "laptop", key())
        secret = token.rpartition(".")[2].encode()
        frames = [frame async for frame in office.backend.log.read("identity")]
        answers = await office.backend.log.answers("identity", newest=100)
        assert frames
        assert answers
        assert not [entry for frame in frames for entry in frame.entries if secret in entry.data]
        assert not [answer for answer in answers if secret in answer.reply]
        files = [path for path in Path(office.settings.home).rglob("*") if path.is_file()]
        assert not [path for path in files if secret in path.read_bytes()]


async def test_a_machine_renews_its_credential_as_long_as_it_may(backend: Backend, tmp_path: Path) -> None:
    """
    Its master writes the next one into the file before the old one ends, and none for a machine of an administrator's token.
    """
    async with office_on(backend, tmp_path, own_worker_lifetime=6.0) as office:
        pair = KeyPair.new(Kind.USER)
        async with office.backend.bus(user("bob")) as bus:
            made = await machines(office, bus).create_join_token()
        _, joined = await office.join(made.token, "laptop", pair.public)
        path = tmp_path / "worker.creds"
        path.write_text(Credential(pair.seed, joined["jwt"]).text())
        async with backend.bus(worker("laptop")) as laptop, asyncio.timeout(PATIENCE_S):
            renewing = asyncio.create_task(keep_renewed(laptop, path))
            while Credential.read(path).life[1] == expires(joined["jwt"]):
                await asyncio.sleep(0.02)
            renewing.cancel()
        later = Credential.read(path)
        assert (pair.seed, "laptop") == (later.seed, later.name)
        assert later.life[1] > expires(joined["jwt"])

        given = await office.administrator.create_join_token(owner="bob")
        await office.join(given.token, "given", key())
        async with backend.bus(worker("given")) as other:
            with pytest.raises(RefusedError, match="no person has let it in"):
                await other.call(RENEW_WORKER, "iam", RenewWorker())
