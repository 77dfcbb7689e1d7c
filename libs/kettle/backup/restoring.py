"""Bringing a pool back from a backup, on a machine that has nothing of it, or that has lost its database."""

import io
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_files import private_directory, write_private
from kettle.backup.bus_heads import BusPlace, ahead, bus_of
from kettle.backup.database_dump import load, require_no_log
from kettle.backup.errors import BackupError, BusAheadOfBackupError, StreamAhead
from kettle.backup.home_files import extract
from kettle.backup.manifest import DATABASE, FILES, LATER, Manifest, ShardHead, Told, check_parts, nowhere
from kettle.backup.verifying import secrets_in
from kettle.bus.ports import BusError
from kettle.embedded import EmbeddedError, EmbeddedPostgres
from kettle.pool.home import Home
from kettle.pool.master_lock import MasterLock, locked

_IDENTITY: Final = "pool.id"


class Servers(msgspec.Struct, frozen=True, kw_only=True):
    """Which servers the settings of the restored pool name."""

    bus: BusPlace
    database_url: str = ""
    """Empty: the pool's own."""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pool is brought back."""

    home: Path
    servers: Callable[[Path], Servers]
    """Reads the settings in a pool's directory, once they are there."""
    accept_loss: bool = False
    """Go on though the bus has frames that are not in the backup: they are lost."""


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """What was done."""

    manifest: Manifest
    home: Path
    bus: BusPlace
    shards: Sequence[ShardHead]
    lost: Sequence[StreamAhead]
    """What the bus had beyond the backup, and was given up."""


async def restore(
    directory: Path, target: Target, *, passphrase: bytes = b"", told: Told = nowhere
) -> Restored:
    """
    Bring a backup into a pool's directory that is empty, or is the same pool's and has no database.

    In the latter keys and files that are there stay as they are.  In the former nothing is left there if it fails.  Of the bus nothing
    is deleted before the log is back.

    Raises:
        BackupError: the backup is damaged, or the directory is in use or another pool's; or the pool is back, and what the bus has
            beyond the backup could not be deleted.
        BusAheadOfBackupError: the bus has frames that are not in the backup.
    """
    manifest = Manifest.load(directory)
    home = target.home
    fresh = _usable(home, manifest)
    check_parts(directory, manifest, told)
    secrets = secrets_in(directory, manifest, passphrase)
    private_directory(home)
    lock = MasterLock.take(Home(home))  # so nobody starts the pool meanwhile
    if lock is None:
        raise _runs(home)
    try:
        try:
            done = await _restored(directory, target, manifest, secrets, told, keep=not fresh)
        except BaseException:
            if fresh:
                _emptied(home)
            raise
        await _give_up(done)
        return done
    finally:
        lock.release()


async def _restored(
    directory: Path, target: Target, manifest: Manifest, secrets: bytes, told: Told, *, keep: bool
) -> Restored:
    home, owners = target.home, os.geteuid() == 0
    extract(io.BytesIO(secrets), home, owners=False, keep=keep, told=told, name="keys")
    for name in (FILES, LATER):
        with (directory / name).open("rb") as archive:
            extract(archive, home, owners=owners, keep=keep, told=told, name=name)
    servers = target.servers(home)
    if servers.database_url:  # a pool that runs elsewhere with this database loses no stream by it
        await require_no_log(servers.database_url)
    lost = await _beyond(home, servers.bus, manifest)
    if lost and not target.accept_loss:
        raise BusAheadOfBackupError(lost)
    shards = await _database(home, servers, manifest, directory / DATABASE, told)
    write_private(home / _IDENTITY, manifest.pool_id + "\n")
    return Restored(manifest=manifest, home=home, bus=servers.bus, shards=shards, lost=lost)


def _runs(home: Path) -> BackupError:
    return BackupError(f"the pool in {home} runs: stop it with kettle down --home {home}")


def _usable(home: Path, manifest: Manifest) -> bool:
    """Whether it is empty; raises BackupError if nothing may be written there."""
    own = Home(home)
    if locked(own):
        raise _runs(home)
    if not home.exists() or not any(home.iterdir()):
        return True
    found = own.pool_id()
    if found != manifest.pool_id:
        what = "has another pool" if found else "is not empty"
        raise BackupError(f"{home} {what}: restore into an empty directory, --home DIRECTORY")
    if (home / "postgres" / "data").exists():
        raise BackupError(
            f"{home} has a database: nothing was restored.  Move {home / 'postgres'} away first, or restore into an empty "
            f"directory"
        )
    return False


async def _beyond(home: Path, place: BusPlace, manifest: Manifest) -> list[StreamAhead]:
    async with bus_of(home, place) as bus:
        return [] if bus is None else await ahead(bus, place.pool, manifest.shards)


async def _give_up(done: Restored) -> None:
    """
    Delete what the bus has beyond the log.  If that fails, or never happens, the owners refuse to serve, which loses nothing.
    """
    if not done.lost:
        return
    if not done.bus.url:  # the pool's own server: all that it has stored follows from the log
        shutil.rmtree(done.home / "nats" / "data" / "jetstream")
        return
    async with bus_of(done.home, done.bus) as bus:
        assert bus is not None
        for each in done.lost:
            try:
                await bus.delete_stream(each.stream)
            except (BusError, OSError) as error:
                raise BackupError(
                    f"the pool is restored, but the stream {each.stream}, which has more frames, cannot be deleted with the credential "
                    f"that is at hand ({error}): have the administrator of the bus delete "
                    f"{', '.join(lost.stream for lost in done.lost)} before the pool is started; until then its owners refuse to serve"
                ) from error


async def _database(
    home: Path, servers: Servers, manifest: Manifest, dump: Path, told: Told
) -> list[ShardHead]:
    if servers.database_url:
        return await load(servers.database_url, dump, told, renew=True)
    try:
        async with EmbeddedPostgres(home / "postgres", database=manifest.database) as server:
            return await load(server.dsn, dump, told, renew=True)
    except EmbeddedError as error:
        raise BackupError(f"the database server does not start: {error}") from error


def _emptied(home: Path) -> None:
    for entry in home.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)
