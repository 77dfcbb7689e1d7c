"""Proving a backup, without the pool that it is of."""

import io
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from kettle.audit import AuditError, AuditReport, AuditScope, check
from kettle.audit.scope import Folds
from kettle.backup.database_dump import listed_tables, load
from kettle.backup.errors import BackupError
from kettle.backup.home_files import extract, read_files
from kettle.backup.keys import misfits
from kettle.backup.manifest import (
    DATABASE,
    FILES,
    LATER,
    SEALED,
    SECRETS,
    Manifest,
    Told,
    check_parts,
    nowhere,
)
from kettle.backup.sealed_part import unseal
from kettle.embedded import EmbeddedError, EmbeddedPostgres

_ARCHIVE: Final = "archive"


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What was found out."""

    manifest: Manifest
    keys: Sequence[str]
    """One sentence for each key that cannot be used; empty: all fit."""
    keys_read: bool
    """Whether the keys were looked at: of a sealed backup only with its passphrase."""
    audit: AuditReport | None
    """Of the restored log; None: it was not restored."""

    @property
    def clean(self) -> bool:
        """Whether a pool could be restored from it."""
        return not self.keys and (self.audit is None or self.audit.clean)


async def verify(
    directory: Path,
    *,
    folds: Folds,
    passphrase: bytes = b"",
    full: bool = True,
    told: Told = nowhere,
) -> Verification:
    """
    Compare all sums, look at the keys, and with `full` restore the database into a server of its own, which is thrown
    away, and audit its log from the first frame on.

    Raises:
        BackupError: a part is missing or damaged.
    """
    manifest = Manifest.load(directory)
    check_parts(directory, manifest, told)
    secrets = secrets_in(directory, manifest, passphrase) if passphrase or not manifest.sealed else None
    wrong = [] if secrets is None else list(misfits(read_files(io.BytesIO(secrets))))
    audit = None
    if full:
        audit = await _audited(directory, manifest, folds, told)
    else:
        await listed_tables(directory / DATABASE)
    return Verification(manifest=manifest, keys=wrong, keys_read=secrets is not None, audit=audit)


def secrets_in(directory: Path, manifest: Manifest, passphrase: bytes) -> bytes:
    """
    The archive of the keys.

    Raises:
        BackupError: it is sealed, and the passphrase is another or none; or there is one, and it is not sealed.
    """
    if not manifest.sealed:
        if passphrase:
            raise BackupError(
                f"the keys of {directory} are not sealed, so the passphrase proves nothing: say so without --passphrase-file, if "
                f"you have made this backup without one"
            )
        return (directory / SECRETS).read_bytes()
    if not passphrase:
        raise BackupError(
            f"the keys of {directory} are sealed: name the file of their passphrase, --passphrase-file FILE"
        )
    return unseal(
        (directory / SEALED).read_bytes(), passphrase, manifest.said(), name=str(directory / SEALED)
    )


async def _audited(directory: Path, manifest: Manifest, folds: Folds, told: Told) -> AuditReport:
    with tempfile.TemporaryDirectory(prefix="kettle-verify-") as name:
        place = Path(name)
        for each in (FILES, LATER):
            with (directory / each).open("rb") as archive:
                extract(archive, place / "home", owners=False, told=told, name=each)
        server = EmbeddedPostgres(place / "postgres", throwaway=True, database=manifest.database)
        try:
            async with server:
                found = await load(server.dsn, directory / DATABASE, told, renew=False)
                if found != list(manifest.shards):
                    raise BackupError(
                        f"the log of {directory} is not as far as its manifest says: it has {_said(found)}, and should "
                        f"have {_said(manifest.shards)}"
                    )
                scope = AuditScope(folds=folds, archive=place / "home" / _ARCHIVE)
                return await check(server.dsn, wanted=scope, told=told)
        except (EmbeddedError, AuditError) as error:
            raise BackupError(f"the log of {directory} cannot be audited: {error}") from error


def _said(shards: Sequence[object]) -> str:
    return ", ".join(map(str, shards))
