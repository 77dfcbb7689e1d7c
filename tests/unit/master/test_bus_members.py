"""
Who may connect to the pool's own server, and what is said when a file of the pool's keys cannot be used.
"""

import asyncio
from base64 import urlsafe_b64decode
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pytest

from kettle.auth.trust.files import key_in
from kettle.auth.trust.keys import KeyPair, TrustError
from kettle.auth.trust.keys import Kind as KeyKind
from kettle.auth.trust.pool import Kind, PoolTrust
from kettle.bus.ports import RefusedError
from kettle.embedded import EmbeddedError
from kettle.pool.home import Home, open_home
from kettle.runtime.settings_problems import Problem
from kettle_services.gateway.rest.local_accounts import LocalAccounts
from kettle_services.master.bus_members import BusMembers
from kettle_services.master.commands import MasterCommands
from kettle_services.master.settings import MasterSettings
from kettle_services.master.supervision.daemon_list import DaemonList
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.master import AdmitAccessPoint, Control, ForgetAccessPoint, RevokeMembers, Switched
from kettle_wire.identity import daemon, user
from kettle_wire.subjects import Subjects

VISITOR = "ap@physics"
SETTINGS = MasterSettings(daemon_list=())
"""Services of which none is to be started."""
OTHERS = msgspec.structs.replace(SETTINGS, flock_from=(VISITOR,))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


def members_of(home: Home) -> BusMembers:
    return BusMembers(home, SETTINGS, [], environ_of=lambda _name: {})


def test_the_keys_of_a_former_version_are_kept_under_their_new_names(home: Home) -> None:
    """
    Its files hold seeds alone; who is not let in any more by now is known by his file, and not believed.
    """
    seeds = {name: KeyPair.new(KeyKind.USER) for name in ("user", "audit", f"visitor-{VISITOR}")}
    other = home.credentials / "of-somebody-else.nk"
    other.write_text("untouched")
    for name, key in seeds.items():
        (home.credentials / f"{name}.nk").write_text(f"{key.seed}\n")
    members = members_of(home)
    for name, key in seeds.items():
        assert not (home.credentials / f"{name}.nk").exists()
        assert key.public == (key_in(home.credentials / f"{name}.creds") or key).public
        assert (home.credentials / f"{name}.creds").exists()
    assert "untouched" == other.read_text()
    revoked = (home.credentials / "trust" / "revoked.json").read_text()
    assert seeds[f"visitor-{VISITOR}"].public in revoked
    assert seeds["user"].public not in revoked
    assert ".creds" == members.credentials("user").suffix


async def _no_problems() -> list[Problem]:
    return []


def commands_of(home: Home, members: BusMembers, group: asyncio.TaskGroup) -> MasterCommands:
    """A master's commands whose settings admit a visitor as soon as they are read again."""

    def revoke(kind: str, keys: Sequence[str]) -> bool:
        members.revoke(Kind[kind.upper()], keys)
        return True

    return MasterCommands(
        DaemonList(home, SETTINGS, pid=1, version="1"),
        SETTINGS,
        load=lambda: OTHERS,
        succeed=lambda _how: None,
        tasks=group,
        admit=partial(members.admit, accounts=[]),
        revoke=revoke,
        check=_no_problems,
    )


async def test_no_access_point_takes_the_name_of_a_queue(home: Home) -> None:
    """Queues of the daemon list are meant; who has joined before there was one may leave."""
    settings = msgspec.structs.replace(SETTINGS, daemon_list=("schedd", "schedd.ap1", "schedd.ap2#2"))
    admitted: list[tuple[str, str]] = []

    def admit(_settings: MasterSettings, name: str, people: str) -> tuple[str, bool]:
        admitted.append((name, people))
        return "A", False

    async with asyncio.TaskGroup() as group:
        commands = MasterCommands(
            DaemonList(home, SETTINGS, pid=1, version="1"),
            settings,
            load=lambda: settings,
            succeed=lambda _how: None,
            tasks=group,
            check=_no_problems,
            admit_access_point=admit,
        )
        for name in ("schedd", "ap1", "ap2"):
            with pytest.raises(RefusedError, match="is a queue of this pool") as refused:
                await commands.admit_access_point(AdmitAccessPoint(name=name, people="A"), daemon("iam"))
            assert RefusalCode.UNACCEPTABLE == refused.value.code
        await commands.admit_access_point(AdmitAccessPoint(name="ap3", people="A"), daemon("iam"))
        await commands.forget_access_point(ForgetAccessPoint(name="ap1"), daemon("iam"))
    assert [("ap3", "A"), ("ap1", "")] == admitted


def damaged_credential(home: Home) -> Path:
    path = home.credential(f"visitor-{VISITOR}")
    path.write_text("")
    return path


def damaged_key(home: Home) -> Path:
    path = home.credentials / "trust" / "sign-visitor.nk"
    path.write_bytes(b"\xff\x00")
    return path


def damaged_list(home: Home) -> Path:
    path = home.credentials / "trust" / "revoked.json"
    path.write_bytes(b'{"OUTSIDERS": ')
    return path


def no_file(home: Home) -> Path:
    path = home.credential(f"visitor-{VISITOR}")
    path.mkdir()
    return path


@pytest.mark.parametrize("damage", [damaged_credential, damaged_key, damaged_list, no_file])
async def test_a_file_that_cannot_be_used_refuses_new_settings(
    home: Home, damage: Callable[[Home], Path]
) -> None:
    """
    `kettle reconfig` is answered by one sentence with the name of the file; once that is gone, they are used.
    """
    members = members_of(home)
    path = damage(home)
    async with asyncio.TaskGroup() as group:
        commands = commands_of(home, members, group)

        async def reconfig(number: int) -> Switched:
            asked = Control(id=str(number), action="reconfig", daemons=["master"], how="graceful")
            (master,) = (await commands.control(asked, user("ada"))).switched
            return master

        refused = await reconfig(1)
        assert "refused" == refused.outcome
        assert refused.why.startswith(f"{path}")
        assert "\n" not in refused.why

        path.rename(path.with_suffix(".damaged"))
        assert "done" == (await reconfig(2)).outcome
        assert home.credential(f"visitor-{VISITOR}").is_file()


async def test_a_damaged_list_of_withdrawn_keys_refuses_to_withdraw_another(home: Home) -> None:
    """Written again it would have forgotten those that were in it."""
    members = members_of(home)
    path = damaged_list(home)
    async with asyncio.TaskGroup() as group:
        with pytest.raises(RefusedError, match=f"{path}: this is no list of withdrawn keys") as refused:
            await commands_of(home, members, group).revoke(
                RevokeMembers(kind="worker", keys=["UA"]), user("ada")
            )
    assert RefusalCode.NOT_RECORDED == refused.value.code


def test_a_damaged_list_of_withdrawn_keys_is_named(tmp_path: Path) -> None:
    """Nobody is let in as if it were empty; a server is told nothing by it either."""
    trust = PoolTrust(tmp_path, Subjects("p"))
    trust.revoke(Kind.VISITOR, ["UA"])
    path = tmp_path / "revoked.json"
    for damaged in (b"", b"\xff", b'{"NOBODY": {}}'):
        path.write_bytes(damaged)
        with pytest.raises(
            TrustError, match=f"{path}: this is no list of withdrawn keys .*; put back a copy"
        ):
            trust.statements()


def test_a_pool_with_a_damaged_key_does_not_start(home: Home) -> None:
    """The sentence says what to do about it."""
    members_of(home)
    path = damaged_key(home)
    with pytest.raises(EmbeddedError, match=f"{path}: this is no NKey seed; remove the file"):
        BusMembers(home, OTHERS, [], environ_of=lambda _name: {})


def test_who_is_banned_is_not_let_in_by_an_account_either(home: Home) -> None:
    """
    The key is withdrawn, stays so when the master is started again, and is believed again when the ban is lifted.  The gateway, which
    asks the bus for nothing, does not let him in either.
    """
    accounts = LocalAccounts(home.path)

    def withdrawn(members: BusMembers) -> set[str]:
        people = KeyPair((home.credentials / "trust" / "account-PEOPLE.nk").read_text()).public
        body = members.statements().accounts[people].split(".")[1]
        claims = msgspec.json.decode(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
        return set(claims["nats"].get("revocations", {}))

    members = BusMembers(home, SETTINGS, ["ada", "bob"], environ_of=lambda _name: {})
    key = key_in(home.credential("account-ada"))
    assert key is not None
    assert members.shut_out(["ada", "nobody-here"])
    assert not members.shut_out(["nobody-here", "ada"])
    assert {key.public} == withdrawn(members)
    assert [False, True] == [accounts.may_come(name) for name in ("ada", "bob")]
    again = BusMembers(home, SETTINGS, ["ada", "bob"], environ_of=lambda _name: {})
    assert {key.public} == withdrawn(again)
    again.shut_out([])
    assert not withdrawn(again)
    assert accounts.may_come("ada")
    kept = key_in(home.credential("account-ada"))
    assert kept is not None
    assert key.public == kept.public


def test_an_account_that_may_not_use_the_pool_any_more_is_no_account_of_the_gateway(home: Home) -> None:
    """Its file is set aside with its key, which is believed again when the account is admitted again."""
    members = BusMembers(home, SETTINGS, ["ada"], environ_of=lambda _name: {})
    accounts, key = LocalAccounts(home.path), key_in(home.credential("account-ada"))
    assert key is not None
    for names in ([], [], ["ada"], []):
        members.admit(SETTINGS, names)
        assert bool(names) == accounts.may_come("ada")
        assert (key.public in (home.credentials / "trust" / "revoked.json").read_text()) != bool(names)


def test_only_a_pool_with_an_iam_lets_people_in_by_token(home: Home) -> None:
    """Others have neither the account nor the keys, and no more to do at their start."""
    members_of(home)
    names = {path.name for path in home.credentials.rglob("*")}
    assert not {"people-keys.json", "sentinel.creds", "account-AUTH.nk", "sign-reader.nk"} & names
    BusMembers(home, msgspec.structs.replace(SETTINGS, daemon_list=("iam",)), [], environ_of=lambda _name: {})
    names = {path.name for path in home.credentials.rglob("*")}
    assert {"people-keys.json", "sentinel.creds", "account-AUTH.nk", "sign-reader.nk"} <= names
