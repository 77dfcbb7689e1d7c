"""Machines that join by a token."""

import base64
import time
from contextlib import aclosing
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from kettle.auth.trust.keys import KeyPair, Kind
from kettle.bus.ports import RefusedError
from kettle.client.join_tokens import new_secret
from kettle.testing.services import Backend, eventually, hosted
from kettle_services.collector.settings import CollectorSettings
from kettle_services.collector.wiring import serve as serve_collector
from kettle_wire.commands import iam
from kettle_wire.commands.collector import QUERY_ADS, QueryAds
from kettle_wire.events import JoinTokenExpired, decode
from kettle_wire.iam_http import join_token
from kettle_wire.identity import daemon
from kettle_wire.subjects import Subjects, ad_key

from .conftest import Office, office_on


def machine() -> str:
    """The public key of a new machine."""
    return KeyPair.new(Kind.USER).public


def claims(jwt: str) -> dict[str, object]:
    part = jwt.split(".")[1]
    return msgspec.json.decode(
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)), type=dict[str, object]
    )


async def test_a_machine_joins_once(office: Office) -> None:
    """
    It gets a statement about the key that it made, the same if it asks again; another machine is refused, with an alarm.
    """
    made = await office.administrator.create_join_token(owner="ada")
    key = machine()
    status, joined = await office.join(made.token, "n1", key)
    assert (200, "n1", "ada") == (status, joined["worker"], joined["owner"])
    said = claims(joined["jwt"])
    assert (key, "n1") == (said["sub"], said["name"])
    assert (200, joined["jwt"]) == ((again := await office.join(made.token, "n1", key))[0], again[1]["jwt"])
    assert [("n1", "ada")] == [(each.worker, each.owner) for each in await office.administrator.workers()]

    status, refusal = await office.join(made.token, "n2", machine())
    assert (403, "join.used") == (status, refusal["code"])
    assert "was used by another machine" in refusal["detail"]
    [alarm] = await office.audit("jointoken.misused")
    assert (True, "n2", "127.0.0.1") == (alarm.alarm, alarm.who, alarm.address)


async def told_owners(office: Office) -> dict[str, bytes]:
    """Whose jobs alone machines take, as negotiators are told."""
    found: dict[str, bytes] = {}
    bucket = Subjects(office.settings.pool).machine_owners
    async with aclosing(office.bus.watch(bucket)) as changes:
        async for change in changes:
            if change is None:
                break
            if change.value is not None:
                found[change.key] = change.value
    return found


async def test_negotiators_are_told_whose_jobs_a_machine_takes(office: Office) -> None:
    """Before the machine has its credential; of a machine that joins again for everybody no more."""
    for owner, told in (("ada", {"n1": b"ada"}), ("", {})):
        made = await office.administrator.create_join_token(owner=owner)
        status, _ = await office.join(made.token, "n1", machine())
        assert (200, told) == (status, await told_owners(office))
        await office.administrator.remove_worker("n1")


async def test_the_secret_of_a_token_is_nowhere(office: Office) -> None:
    """Neither events nor answers that are stored with commands nor files have the secret of a join token."""
    made = await office.administrator.create_join_token()
    await office.join(made.token, "n1", machine())
    secret = made.token.split(".")[2].encode()
    frames = [frame async for frame in office.backend.log.read("identity")]
    answers = await office.backend.log.answers("identity", newest=100)
    assert frames
    assert not [entry for frame in frames for entry in frame.entries if secret in entry.data]
    assert not [answer for answer in answers if secret in answer.reply]
    files = [path for path in Path(office.settings.home).rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if secret in path.read_bytes()]


@pytest.mark.parametrize(
    ("part", "wrong", "code"),
    [
        (1, "0" * 12, "join.unknown"),
        (2, "x" * 43, "join.secret"),
        (3, "0" * 64, "join.other_pool"),
    ],
)
async def test_a_wrong_token_is_refused_with_an_alarm(
    office: Office, part: int, wrong: str, code: str
) -> None:
    """
    One that nobody made, one with another secret, and one for another pool: one sentence and an alarm each.
    """
    parts = (await office.administrator.create_join_token()).token.split(".")
    parts[part] = wrong
    status, refusal = await office.join(".".join(parts), "n1", machine())
    assert (403, code) == (status, refusal["code"])
    assert [code.partition(".")[2]] == [
        act.sentence.rpartition(": ")[2] for act in await office.audit("jointoken.misused")
    ]
    assert [] == await office.administrator.workers()


async def test_another_owner_and_a_withdrawn_token_are_refused(office: Office) -> None:
    """A machine of bob cannot join with a token of ada, and nobody can with one that was withdrawn."""
    of_ada = await office.administrator.create_join_token(owner="ada")
    assert "join.other_owner" == (await office.join(of_ada.token, "n1", machine(), owner="bob"))[1]["code"]
    await office.administrator.revoke_join_token(of_ada.made.token)
    assert "join.revoked" == (await office.join(of_ada.token, "n1", machine(), owner="ada"))[1]["code"]
    assert [] == await office.administrator.join_tokens()


async def test_a_late_machine_is_refused_and_the_token_forgotten(backend: Backend, tmp_path: Path) -> None:
    """
    After its time a token admits nobody, which is an alarm, and later nothing is known of it; the log says
    all of that.
    """
    async with office_on(backend, tmp_path, join_tokens_kept=6.0) as office:
        made = await office.administrator.create_join_token(lifetime=0.05)

        async def refused() -> str:
            return (
                str((await office.join(made.token, "n1", machine()))[1]["code"])
                if not await _usable(office)
                else ""
            )

        assert "join.expired" == await eventually(refused)

        async def forgotten() -> bool:
            frames = [frame async for frame in backend.log.read("identity")]
            events = [decode(entry.data) for frame in frames for entry in frame.entries]
            return any(isinstance(event, JoinTokenExpired) for event in events)

        await eventually(forgotten)
        assert "join.unknown" == (await office.join(made.token, "n1", machine()))[1]["code"]


async def _usable(office: Office) -> bool:
    return bool(await office.administrator.join_tokens())


async def test_what_is_recorded_outlives_the_service(backend: Backend, tmp_path: Path) -> None:
    """The next iam knows machines, tokens and bans, has the same keys, and the same port."""
    async with office_on(backend, tmp_path) as office:
        made = await office.administrator.create_join_token(max_uses=2)
        key = machine()
        first = await office.join(made.token, "n1", key)
        await office.administrator.ban("user:eve", reason="mining")
        keys, url = (await office.get("/jwks.json")), office.url
    async with office_on(backend, tmp_path) as office:
        assert (keys, url) == (await office.get("/jwks.json"), office.url)
        assert [["n1"]] == [each.used for each in await office.administrator.join_tokens()]
        assert ["user:eve"] == [each.whom for each in await office.administrator.bans()]
        assert first[1]["jwt"] == (await office.join(made.token, "n1", key))[1]["jwt"]
        assert 200 == (await office.join(made.token, "n2", machine()))[0]
        status, taken = await office.join(made.token, "n1", machine())
        assert (403, "join.used") == (status, taken["code"])


async def test_a_name_belongs_to_one_key(office: Office) -> None:
    """A second machine cannot take the name of one that has joined, until that has left."""
    made = await office.administrator.create_join_token(max_uses=3)
    assert 200 == (await office.join(made.token, "n1", machine()))[0]
    assert (409, "join.name_taken") == (
        (taken := await office.join(made.token, "n1", machine()))[0],
        taken[1]["code"],
    )
    await office.administrator.remove_worker("n1")
    assert 200 == (await office.join(made.token, "n1", machine()))[0]


async def test_no_machine_takes_the_name_of_a_host(backend: Backend, tmp_path: Path) -> None:
    """
    Of one that is in the pool without having joined, whatever daemon of it says so to the collector; who can say nothing lets
    nobody in.
    """
    async with office_on(backend, tmp_path, collector="real") as office:
        made = await office.administrator.create_join_token(max_uses=2)
        status, refusal = await office.join(made.token, "n1", machine())
        assert (503, "join.closed") == (status, refusal["code"])
        settings = backend.settings(CollectorSettings, name="real")
        async with hosted("collector", settings, serve_collector), backend.bus(daemon("master")) as master:
            for kind, name, of in (
                ("DaemonMaster", "server2", "server2.site"),
                ("StartDaemon", "server3", "server3.site"),
                ("Scheduler", "ap", "server4"),
            ):
                ad = {"MyType": kind, "Name": name, "Machine": of}
                await master.put(backend.subjects.ads, ad_key(kind, name), msgspec.msgpack.encode(ad))

            async def known() -> bool:
                found = (await office.bus.call(QUERY_ADS, "real", QueryAds())).ads
                return {"server2", "server3", "ap"} <= {ad["Name"] for ad in found}

            await eventually(known)
            people = KeyPair.new(Kind.ACCOUNT).public
            submit = await office.administrator.create_join_token(joins="schedd")
            status, refusal = await office.join(submit.token, "ap", machine(), joins="schedd", people=people)
            assert (409, "join.name_taken") == (status, refusal["code"])
            for name in ("server2", "SERVER3", "server4", "server2.site"):
                status, refusal = await office.join(made.token, name, machine())
                assert (409, "join.name_taken") == (status, refusal["code"])
            assert 200 == (await office.join(made.token, "n1", machine()))[0]
            assert 200 == (await office.join(made.token, "ap", machine()))[0]


async def test_a_provisioner_lets_in_one_machine_of_a_lease(office: Office) -> None:
    """
    It asks for nothing else; when it says that the lease is over nothing joins under its name, however often it says so.
    """
    lease = iam.CreateJoinToken(id="1", hash="0" * 64, machine="p-1-1", life=60.0)
    async with office.backend.bus(daemon("provisioner")) as bus:
        for wrong in (
            replace(lease, id="2", machine=""),
            replace(lease, id="3", life=0.0),
            replace(lease, id="4", lifetime=iam.LONGEST_LEASE_JOIN_S + 1.0),
        ):
            with pytest.raises(RefusedError, match="one machine of a lease"):
                await bus.call(iam.CREATE_JOIN_TOKEN, "iam", wrong)
        secret, hash_ = new_secret()
        made = await bus.call(iam.CREATE_JOIN_TOKEN, "iam", replace(lease, hash=hash_))
        token = join_token(made.token, secret, made.pin)
        status, refusal = await office.join(token, "p-1-2", machine())
        assert (403, "join.other_machine") == (status, refusal["code"])
        before = time.time()
        status, joined = await office.join(token, "p-1-1", machine())
        assert (200, "") == (status, joined["by"])
        assert before <= joined["expires"] - lease.life <= time.time()
        [shown] = await office.administrator.workers()
        assert ("p-1-1", True) == (shown.worker, shown.leased)
        for again in ("5", "6"):
            await bus.call(iam.REMOVE_WORKER, "iam", iam.RemoveWorker(id=again, worker="p-1-1"))
        assert [] == await office.administrator.workers()
        other = await office.administrator.create_join_token()
        await office.join(other.token, "n1", machine())
        with pytest.raises(RefusedError, match="is no machine of a lease"):
            await bus.call(iam.REMOVE_WORKER, "iam", iam.RemoveWorker(id="7", worker="n1"))
