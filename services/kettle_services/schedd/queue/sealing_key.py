"""The key with which a queue seals what is private of its jobs, and those before it."""

from contextlib import suppress
from pathlib import Path

from kettle.auth.private_files import key_file
from kettle.jobs.sealed_attributes import SUFFIX, AttributeSeal, key_id


def seal_of(path: Path, *, now: float, lifetime: float) -> AttributeSeal:
    """
    The seal of a queue, whose key is in a file: made if there is none, and exchanged if it is older than `lifetime` seconds (0:
    never).  What a key has sealed stays in the log, so it stays beside the new one, and opens.

    Raises OSError, and ValueError if the file holds no key.
    """
    key = key_file(path)
    if lifetime and path.stat().st_mtime + lifetime <= now:
        _retire(path, key)
        key = key_file(path)
    return AttributeSeal([key], path.parent)


def _retire(path: Path, key: bytes) -> None:
    """Keep a key under a name of its own; at each moment it is in one of the two places."""
    with suppress(FileExistsError):
        path.with_name(f"{path.stem}-{key_id(key)}{SUFFIX}").hardlink_to(path)
    path.unlink()
