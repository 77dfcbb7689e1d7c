"""
From a key's file to the secret that signs tokens, as in HTCondor: its files are scrambled, and the key of the pool is
doubled.
"""

import hashlib
import hmac
import os
import stat
from collections.abc import Iterable
from pathlib import Path
from typing import Final

POOL: Final = "POOL"
"""The name of the key that a pool has always."""

_SCRAMBLE: Final = bytes.fromhex("deadbeef")
_SALT: Final = b"htcondor"
_INFO: Final = b"master jwt"
_OTHERS: Final = 0o077
_LONGEST: Final = 64 << 10


class KeyFileError(Exception):
    """The key cannot be used; the text names the file."""


def scrambled(data: bytes) -> bytes:
    """The bytes as a file has them, or back: no secret, only nothing that one reads by accident."""
    return bytes(byte ^ _SCRAMBLE[at % 4] for at, byte in enumerate(data))


def read_key(path: Path, owners: Iterable[int] | None = None) -> bytes:
    """
    What is in a key's file, without the scrambling.

    `owners`: whose files are used, by number; root's and one's own if nobody is named. Anybody else who may read or write the file
    can sign tokens, so such a file is not used.

    Raises KeyFileError.
    """
    trusted = {0, os.geteuid()} if owners is None else set(owners)
    try:
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode) or found.st_uid not in trusted or found.st_mode & _OTHERS:
                raise KeyFileError(
                    f"Failed to read file {path} securely: it is to be a file of root or of yours that nobody else may read"
                    " (chmod 600)"
                )
            data = file.read(_LONGEST + 1)
    except OSError as error:
        raise KeyFileError(f"Failed to read file {path} securely: {error.strerror}") from None
    if not data or len(data) > _LONGEST:
        raise KeyFileError(f"Failed to read file {path} securely: it has no key in it")
    return scrambled(data)


def signing_secret(name: str, key: bytes) -> bytes:
    """The secret of 32 bytes that signs with the key of this name (HKDF of RFC 5869, with SHA-256)."""
    whole = key * 2 if name == POOL else key
    extracted = hmac.digest(_SALT, whole, hashlib.sha256)
    return hmac.digest(extracted, _INFO + b"\x01", hashlib.sha256)
