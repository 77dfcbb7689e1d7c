"""Private directories and files: made so that nobody else can read them at any moment, not even briefly."""

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

KEY_BYTES: Final = 32


def private_directory(path: Path) -> Path:
    """A directory that only its owner can enter; the parents that are missing are private too."""
    if not path.is_dir():
        private_directory(path.parent)
        path.mkdir(mode=0o700, exist_ok=True)
    return path


def write_private(path: Path, content: str | bytes) -> Path:
    """
    Replace a file, atomically, by one that only its owner can read.

    It may hold the only copy of a key, so it is on the disk before it takes the place of the old one.
    """
    stage = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    fd = os.open(stage, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(fd)
        stage.replace(path)
    except OSError:
        stage.unlink(missing_ok=True)
        raise
    return path


def key_file(path: Path) -> bytes:
    """
    A key of 32 bytes, which is made if there is none; of several processes that make it one is the first.

    Raises:
        OSError: it cannot be read or made.
        ValueError: what is there is no key; the sentence names the file.
    """
    if not path.exists():
        private_directory(path.parent)
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
        with os.fdopen(
            os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb"
        ) as file:
            file.write(os.urandom(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):  # somebody else was faster: his key counts
            path.hardlink_to(draft)
        draft.unlink()
    key = path.read_bytes()
    if len(key) < KEY_BYTES:
        raise ValueError(f"{path} is no key: it has {len(key)} bytes, not {KEY_BYTES}")
    return key
