"""Making a backup of a pool that runs."""

import os
import socket
from collections.abc import Sequence
from pathlib import Path

import msgspec

from kettle.auth.private_files import write_private
from kettle.backup.database_dump import dump, snapshot
from kettle.backup.errors import BackupError
from kettle.backup.home_files import Seen, secrets_of, write_files
from kettle.backup.manifest import (
    DATABASE,
    FILES,
    LATER,
    SEALED,
    SECRETS,
    Manifest,
    Setting,
    Told,
    nowhere,
    part_of,
)
from kettle.backup.sealed_part import seal
from kettle.backup.stage import complete, stage_for


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A pool that is to be backed up."""

    home: Path
    kettle: str
    """The version of this program."""
    pool: str
    pool_id: str
    database_url: str
    settings: Sequence[Setting] = ()
    """For who looks at the backup; the file of settings is in it as it is."""
    outside: Sequence[str] = ()
    elsewhere: int = 0


async def create(
    source: Source, directory: Path, *, passphrase: bytes = b"", told: Told = nowhere
) -> Manifest:
    """
    Write a backup into a directory that is not there yet; what it says of itself.

    The pool may run: the database is read from one snapshot, and every file that the queue had at that moment is in the
    backup, since files are read before it and those that have come again after it.

    Raises:
        BackupError: something cannot be read or written; nothing is left behind.
    """
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with stage_for(directory) as stage:
            if directory.exists():
                raise BackupError(f"{directory} exists: a backup is made in a directory of its own")
            manifest = await _write(source, stage, passphrase, told)
            manifest.save(stage)
            complete(stage, directory)
            _flush(directory.parent)
    except OSError as error:
        raise BackupError(
            f"{error.filename or directory} cannot be read or written: {error.strerror}"
        ) from error
    return manifest


async def _write(source: Source, stage: Path, passphrase: bytes, told: Told) -> Manifest:
    seen: Seen = {}
    write_files(source.home, stage / FILES, seen=seen, told=told)
    async with snapshot(source.database_url) as moment:
        await dump(source.database_url, moment, stage / DATABASE, told)
    write_files(source.home, stage / LATER, seen=seen, told=told)
    manifest = Manifest(
        kettle=source.kettle,
        pool=source.pool,
        pool_id=source.pool_id,
        at=moment.at,
        host=socket.gethostname(),
        postgres=moment.server,
        database=moment.database,
        shards=moment.shards,
        migrations=moment.migrations,
        settings=source.settings,
        outside=source.outside,
        elsewhere=source.elsewhere,
        parts=[part_of(stage / name) for name in (DATABASE, FILES, LATER)],
    )
    secrets = secrets_of(source.home)
    keys = stage / (SEALED if passphrase else SECRETS)
    write_private(keys, seal(secrets, passphrase, manifest.said()) if passphrase else secrets)
    return msgspec.structs.replace(manifest, parts=[*manifest.parts, part_of(keys)])


def _flush(directory: Path) -> None:
    """The name of the backup is on the disk, as its files are."""
    fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
