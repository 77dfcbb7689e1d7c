"""
The manifest of a shard's archive: what each file holds and what its hash is, beside the files.

It says the same as the table log.archive, for who has the files and not the database.
"""

import hashlib
import os
import secrets
import urllib.parse
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Final, Literal

import msgspec

from kettle.archive.errors import ArchiveError, DamagedArchiveError
from kettle.storage.archived_pieces import Piece

NAME: Final = "manifest.json"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """All pieces of one shard, oldest first."""

    format: Literal["kettle.archive/1"] = "kettle.archive/1"
    shard: str
    pieces: list[Piece] = []

    def piece(self, number: int) -> Piece | None:
        """The entry of a piece, if there is one."""
        return next((piece for piece in self.pieces if piece.piece == number), None)


def directory_of(shard: str) -> str:
    """The name of a shard's directory: one safe path element for each name."""
    quoted = urllib.parse.quote(shard, safe="")
    return "%2E" + quoted[1:] if quoted.startswith(".") else quoted


def read_manifest(directory: Path, shard: str) -> Manifest:
    """
    The manifest of a shard below the archive directory; an empty one if there is none.

    Raises:
        DamagedArchiveError: it cannot be read, or is another shard's.
    """
    path = directory / directory_of(shard) / NAME
    try:
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except FileNotFoundError:
        return Manifest(shard=shard)
    except (OSError, msgspec.MsgspecError) as error:
        raise DamagedArchiveError(
            f"{path} cannot be read: {error}. Bring it back from a copy; the table log.archive says the same."
        ) from error
    if manifest.shard != shard:
        raise DamagedArchiveError(f"{path} is the manifest of {manifest.shard}.")
    return manifest


def add_to_manifest(directory: Path, piece: Piece) -> None:
    """
    Put a piece into its shard's manifest, in place of an entry for the same piece. Atomic: all or nothing, and on disk.
    """
    manifest = read_manifest(directory, piece.shard)
    kept = [other for other in manifest.pieces if other.piece != piece.piece]
    changed = msgspec.structs.replace(manifest, pieces=sorted([*kept, piece], key=lambda p: p.piece))
    text = msgspec.json.format(msgspec.json.encode(changed), indent=1)
    path = directory / directory_of(piece.shard) / NAME
    with new_file(path.parent) as (file, temporary):
        file.write(text + b"\n")
        settle(file)
        put_in_place(temporary, path)


@contextmanager
def new_file(directory: Path) -> Generator[tuple[IO[bytes], Path]]:
    """A file under a temporary name, which is deleted at the end unless it was put in place."""
    path = directory / f".{secrets.token_hex(8)}.tmp"
    try:
        with path.open("x+b") as file:
            yield file, path
    finally:
        path.unlink(missing_ok=True)


def settle(file: IO[bytes]) -> None:
    """What was written is on disk afterwards."""
    file.flush()
    os.fsync(file.fileno())


def put_in_place(temporary: Path, path: Path) -> None:
    """Rename, durably: after a crash there is the old file or the new one."""
    temporary.replace(path)
    _settle_names(path.parent)


def _settle_names(directory: Path) -> None:
    """The names in a directory are on disk afterwards."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def make_directory(directory: Path, shard: str) -> Path:
    """
    The directory of a shard's files, made if it is not there, without what a killed archiver left.

    Raises:
        ArchiveError: it cannot be made.
    """
    path = directory / directory_of(shard)
    try:
        made = [one for one in path.parents if not one.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for one in (path, *made):  # else a crash may lose the directory with all its files
            _settle_names(one.parent)
        for left in path.glob(".*.tmp"):
            left.unlink(missing_ok=True)
    except OSError as error:
        raise ArchiveError(f"{path}: the archive cannot be written: {error.strerror}.") from error
    return path


def sha256_of(path: Path) -> str:
    """The hash of a file's bytes, as `sha256sum` prints it."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
