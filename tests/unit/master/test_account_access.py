"""What accounts find of a pool of root that they may use."""

import os
import stat
from pathlib import Path

import msgspec
import pytest

from kettle.client import PoolFile
from kettle.pool.home import Home, open_home
from kettle_services.master.account_access import AccountsError, Admitted, tell, withdraw
from kettle_services.master.settings import MasterSettings

POOL = PoolFile(
    pool="p", nats_url="nats://h:1", credentials="/root/user.creds", user="root", database_url="secret"
)
ME = os.geteuid(), os.getegid()


def admitted(tmp_path: Path, name: str) -> Admitted:
    """An account with our numbers, so that anybody can run this."""
    seed = tmp_path / f"account-{name}.creds"
    seed.write_text(f"seed of {name}\n")
    return Admitted(name, *ME, seed)


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return open_home(tmp_path / "home")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "accounts"


def test_each_finds_the_address_and_a_key_of_its_own(tmp_path: Path, home: Home, directory: Path) -> None:
    """For its eyes only; not how to reach the database, and no way to put a link where we write."""
    tell(home, directory, [admitted(tmp_path, "ada"), admitted(tmp_path, "bob")], POOL)
    found = PoolFile.load(directory / "ada")
    assert ("ada", "nats://h:1", "") == (found.user, found.nats_url, found.database_url)
    assert "seed of ada\n" == Path(found.credentials).read_text()
    for path in (directory / "ada").iterdir():
        assert 0o400 == stat.S_IMODE(path.stat().st_mode), path
    assert {0o755} == {stat.S_IMODE(path.stat().st_mode) for path in (directory, directory / "ada")}


def test_each_finds_the_authority_of_an_encrypted_pool(tmp_path: Path, home: Home, directory: Path) -> None:
    """It has a copy, because the pool's own files are closed to it."""
    (tmp_path / "ca.pem").write_text("CERTIFICATE\n")
    pool = msgspec.structs.replace(POOL, ca=str(tmp_path / "ca.pem"))
    tell(home, directory, [admitted(tmp_path, "ada")], pool)
    found = PoolFile.load(directory / "ada")
    assert str(directory / "ada" / "ca.pem") == found.ca
    assert "CERTIFICATE\n" == Path(found.ca).read_text()


def test_who_may_no_longer_finds_nothing(tmp_path: Path, home: Home, directory: Path) -> None:
    """Nor does anybody when the list is empty, or the pool is down."""
    ada = admitted(tmp_path, "ada")
    tell(home, directory, [ada, admitted(tmp_path, "bob")], POOL)
    tell(home, directory, [ada], POOL)
    assert {".kettle-accounts", "ada"} == {path.name for path in directory.iterdir()}
    tell(home, directory, [], POOL)
    assert not directory.exists()
    tell(home, directory, [ada], POOL)
    tell(home, tmp_path / "elsewhere", [ada], POOL)
    assert not directory.exists()
    withdraw(home)
    assert not (tmp_path / "elsewhere").exists()
    withdraw(home)


def test_a_directory_of_somebody_else_is_refused(tmp_path: Path, home: Home, directory: Path) -> None:
    """Of another pool, with other things in it, a link, or one that others can write to."""
    ada = admitted(tmp_path, "ada")
    tell(home, directory, [ada], POOL)
    other = open_home(tmp_path / "other")
    with pytest.raises(AccountsError, match="another pool"):
        tell(other, directory, [ada], POOL)
    (tmp_path / "full" / "x").mkdir(parents=True)
    (tmp_path / "target").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    for name, why in (
        ("full", "something else"),
        ("link", "others"),
        ("open", "others"),
        ("file", "cannot be told"),
    ):
        if name == "file":
            (tmp_path / name).touch()
        with pytest.raises(AccountsError, match=why):
            tell(home, tmp_path / name, [ada], POOL)
    assert ["x"] == [path.name for path in (tmp_path / "full").iterdir()]


def test_settings_that_make_no_sense_are_refused() -> None:
    """A place that depends on the working directory; accounts where nobody could act for them."""
    with pytest.raises(ValueError, match="no absolute path"):
        MasterSettings(accounts_directory="run")
    if os.geteuid() != 0:
        with pytest.raises(ValueError, match="only a pool of root"):
            MasterSettings(accounts=("ada",))
