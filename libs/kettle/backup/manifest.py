"""What a backup says of itself."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from kettle.auth.private_files import write_private
from kettle.backup.errors import BackupError

FORMAT: Final = 1
"""Raised when an older Kettle could not read what is written."""
FILE: Final = "manifest.json"
DATABASE: Final = "database.dump"
FILES: Final = "files.tar"
LATER: Final = "files-later.tar"
SECRETS: Final = "secrets.tar"
SEALED: Final = "secrets.sealed"
_PARTS: Final = (DATABASE, FILES, LATER)
"""Of each backup; with the keys, as they are or sealed."""
_PIECE: Final = 1 << 20

Told: TypeAlias = Callable[[str, int, int], None]
"""Receives the progress of one part: its name, how much is done, of how much."""


def nowhere(name: str, done: int, total: int) -> None:
    """Nobody wants to hear of the progress."""


class ShardHead(msgspec.Struct, frozen=True):
    """How far the log of one shard is in the backup."""

    shard: str
    epoch: int
    frame: int
    """The number of the last frame."""
    position: int
    """The position of the last event."""


class Setting(msgspec.Struct, frozen=True):
    """One setting that is not the default; secrets are not shown."""

    daemon: str
    setting: str
    value: Any
    origin: str


class Part(msgspec.Struct, frozen=True):
    """One file of the backup."""

    name: str
    size: int
    """In bytes."""
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that can be known of a backup without opening its parts."""

    format: int = FORMAT
    kettle: str
    """The version that made it."""
    pool: str
    pool_id: str
    at: str
    """When the snapshot of the database was taken, in UTC, as in ISO 8601."""
    host: str
    postgres: str
    """The version of the server of the database."""
    database: str
    """Its name: roles are named after it."""
    shards: Sequence[ShardHead]
    migrations: Sequence[str]
    """The steps that its schema has, as COMPONENT/NAME."""
    settings: Sequence[Setting]
    outside: Sequence[str]
    """Files that settings or links name and that are elsewhere, so that they are not in the backup."""
    elsewhere: int
    """How many further databases the pool has; each is backed up where it is."""
    parts: Sequence[Part]

    @property
    def sealed(self) -> bool:
        """Whether its keys need a passphrase."""
        return any(part.name == SEALED for part in self.parts)

    def said(self) -> bytes:
        """A sum of all that it says but of the sealed keys, which open only together with it."""
        others = [part for part in self.parts if part.name != SEALED]
        plain = msgspec.json.decode(msgspec.json.encode(msgspec.structs.replace(self, parts=others)))
        return hashlib.sha256(msgspec.json.encode(plain, order="sorted")).digest()

    def part(self, name: str) -> Part | None:
        """The part of this name, if it has one."""
        return next((part for part in self.parts if part.name == name), None)

    def save(self, directory: Path) -> None:
        """Write it; with it the backup is complete."""
        data = msgspec.json.format(msgspec.json.encode(self), indent=2)
        write_private(directory / FILE, data + b"\n")

    @classmethod
    def load(cls, directory: Path) -> "Manifest":
        """
        The manifest of a backup.

        Raises:
            BackupError: there is none, or a newer Kettle made it.
        """
        path = directory / FILE
        try:
            data = path.read_bytes()
            version = msgspec.json.decode(data, type=_Format).format
            if version > FORMAT:
                raise BackupError(
                    f"{path} has the format {version}, and this Kettle reads up to {FORMAT}: use the Kettle that made the "
                    f"backup, or a newer one"
                )
            return msgspec.json.decode(data, type=cls)
        except OSError as error:
            raise BackupError(
                f"{directory} is no complete backup: {path.name}, which is written last, cannot be read ({error.strerror})"
            ) from error
        except msgspec.MsgspecError as error:
            raise BackupError(f"{path} is no manifest of a backup: {error}") from error


class _Format(msgspec.Struct, frozen=True):
    format: int


def part_of(path: Path) -> Part:
    """A finished file of a backup, with its sum."""
    return Part(path.name, path.stat().st_size, sum_of(path))


def sum_of(path: Path, told: Told = nowhere) -> str:
    """The SHA-256 of a file."""
    found, done, total = hashlib.sha256(), 0, path.stat().st_size
    with path.open("rb") as file:
        while piece := file.read(_PIECE):
            found.update(piece)
            done += len(piece)
            told(path.name, done, total)
    return found.hexdigest()


def check_parts(directory: Path, manifest: Manifest, told: Told = nowhere) -> None:
    """
    Compare every part with its sum.

    Raises:
        BackupError: one is missing or has changed, or the manifest names others.
    """
    names = sorted(part.name for part in manifest.parts)
    if names not in (sorted((*_PARTS, SECRETS)), sorted((*_PARTS, SEALED))):
        raise BackupError(
            f"{directory / FILE} does not name the parts of a backup, but {', '.join(names) or 'none'}: take another backup"
        )
    for part in manifest.parts:
        path = directory / part.name
        try:
            size, found = path.stat().st_size, ""
            if size == part.size:
                found = sum_of(path, told)
        except OSError as error:
            raise BackupError(
                f"{path} cannot be read: {error.strerror}; the backup is not complete"
            ) from error
        if size != part.size:
            raise BackupError(
                f"{path} has {size} bytes, and {FILE} says {part.size}: the backup is damaged; take another one"
            )
        if found != part.sha256:
            raise BackupError(
                f"{path} is not what was written: its SHA-256 is another than that in {FILE}; take another backup"
            )
