"""
Accounts of this machine that may use a pool of root: each finds the pool's address, and a key that only it can read, in a
directory of its own.

    <directory>/<login>/pool.json    how to reach the pool
    <directory>/<login>/sentinel.creds  what is shown together with a token, where the pool takes any
    <directory>/<login>/user.creds   the account's credentials
    <directory>/<login>/ca.pem       by whom the bus is trusted, if its connections are encrypted

The directories belong to root, so that nobody can put a link in the way of what is written here.
"""

import grp
import logging
import os
import pwd
import secrets
import shutil
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kettle.accounts.lookup import Accounts, StrangerError
from kettle.pool.home import Home

if TYPE_CHECKING:
    from kettle.client.connections.pool_file import PoolFile

_KEY: Final = "user.creds"
_CA: Final = "ca.pem"
_POOL: Final = "pool.json"
_SENTINEL: Final = "sentinel.creds"
_MARK: Final = ".kettle-accounts"
"""Says which pool's the directory is."""
_OPEN: Final = 0o755

_log: Final = logging.getLogger(__name__)


class AccountsError(Exception):
    """The accounts cannot be told how to reach the pool; the message is a sentence."""


class Admitted(msgspec.Struct, frozen=True):
    """An account, and the file with the seed that the pool knows it by."""

    name: str
    uid: int
    gid: int
    seed: Path


def credential_of(name: str) -> str:
    """The name of the credential of an account."""
    return f"account-{name}"


def named(wanted: Sequence[str]) -> list[str]:
    """
    The accounts of persons among `wanted`, login names and `@group` for the members of a group; the others are named in
    the log, and are let in as soon as they exist and the settings are read again.
    """
    accounts, found = Accounts(), dict[str, None]()
    for name in (each for one in wanted for each in _members(one)):
        try:
            if accounts.look(name) is not None:
                found[name] = None
        except StrangerError as error:
            _log.warning("not let into the pool: %s", error, extra={"account": name})
    return list(found)


def _members(wanted: str) -> list[str]:
    if not wanted.startswith("@"):
        return [wanted]
    try:
        group = grp.getgrnam(wanted[1:])
    except KeyError:
        _log.warning("there is no group %s: none of its members is let into the pool", wanted[1:])
        return []
    primary = [entry.pw_name for entry in pwd.getpwall() if entry.pw_gid == group.gr_gid]
    return list(dict.fromkeys([*group.gr_mem, *primary]))


def admitted(names: Sequence[str], credentials: Path) -> list[Admitted]:
    """What is to be written for accounts whose keys have been made."""
    found: list[Admitted] = []
    for name in names:
        entry = pwd.getpwnam(name)
        seed = credentials / f"{credential_of(name)}.creds"
        found.append(Admitted(name, entry.pw_uid, entry.pw_gid, seed))
    return found


def tell(home: Home, directory: Path, accounts: Sequence[Admitted], pool: "PoolFile") -> None:
    """
    Write the files of all accounts, and remove those of others that may not use the pool any more.

    `pool` is that of our own account, which may reach the database as well.  Raises AccountsError.
    """
    try:
        if not accounts:
            withdraw(home)
            return
        _take(directory, home.pool_id())
        if _told(home) != directory:
            withdraw(home)
        if _told(home) is None:
            _link(home).symlink_to(directory)
        for entry in directory.iterdir():
            if entry.name != _MARK and entry.name not in {account.name for account in accounts}:
                shutil.rmtree(entry)
        for account in accounts:
            place = directory / account.name
            place.mkdir(mode=_OPEN, exist_ok=True)
            place.chmod(_OPEN)
            theirs = msgspec.structs.replace(
                pool,
                user=account.name,
                credentials=str(place / _KEY),
                ca=str(place / _CA) if pool.ca else "",
                sentinel=str(place / _SENTINEL) if pool.sentinel else "",
                database_url="",
            )
            if pool.sentinel:
                _write(place / _SENTINEL, Path(pool.sentinel).read_bytes(), account)
            if pool.ca:  # it may lie where they cannot read it
                _write(place / _CA, Path(pool.ca).read_bytes(), account)
            _write(place / _KEY, account.seed.read_bytes(), account)
            _write(place / _POOL, msgspec.json.format(msgspec.json.encode(theirs)) + b"\n", account)
    except OSError as error:
        raise AccountsError(
            f"the accounts cannot be told in {directory} how to reach the pool: {error.strerror}; "
            "choose another directory with accounts_directory of [master]"
        ) from error


def withdraw(home: Home) -> None:
    """The pool is down, or nobody may use it any more: remove what says how to reach it."""
    directory = _told(home)
    if directory is None:
        return
    with suppress(FileNotFoundError, NotADirectoryError):
        if (directory / _MARK).read_text(encoding="ascii") == home.pool_id():
            shutil.rmtree(directory)
    _link(home).unlink()


def _link(home: Home) -> Path:
    """A link in the pool's directory to the one in which accounts were told last."""
    return home.path / "accounts"


def _told(home: Home) -> Path | None:
    return _link(home).readlink() if _link(home).is_symlink() else None


def _take(directory: Path, pool_id: str) -> None:
    """Make the directory ours.  Raises AccountsError if it is another pool's, or anybody else's."""
    directory.mkdir(mode=_OPEN, parents=True, exist_ok=True)
    about = directory.lstat()
    if directory.is_symlink() or about.st_uid != os.geteuid() or about.st_mode & 0o022:
        raise AccountsError(
            f"{directory} can be changed by others than this account: choose another directory"
        )
    directory.chmod(_OPEN)
    mark = directory / _MARK
    if not mark.exists():
        if any(directory.iterdir()):
            raise AccountsError(f"{directory} holds something else: choose another directory")
        mark.write_text(pool_id, encoding="ascii")
    elif mark.read_text(encoding="ascii") != pool_id:
        raise AccountsError(f"{directory} is that of another pool: choose another directory")


def _write(path: Path, data: bytes, account: Admitted) -> None:
    stage = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o400)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        os.fchown(fd, account.uid, account.gid)
    stage.replace(path)
