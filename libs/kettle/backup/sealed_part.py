"""
The keys of a pool under a passphrase: AES-256-GCM, with a key that scrypt makes of the passphrase.

The passphrase comes from a file, never from the command line, where every process of the machine could read it.
"""

import os
from pathlib import Path
from typing import Final

from kettle.backup.errors import BackupError

_MARK: Final = b"kettle-sealed-1\n"
_SALT: Final = 16
_NONCE: Final = 12
_LEAST: Final = 12
"""Characters of a passphrase."""


def passphrase_in(path: Path) -> bytes:
    """
    The first line of a file.

    Raises:
        BackupError: it cannot be read, is too short, or can be read by others.
    """
    try:
        mode, text = path.stat().st_mode, path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BackupError(f"the passphrase cannot be read from {path}: {error}") from error
    if mode & 0o077:
        raise BackupError(f"others can read the passphrase in {path}: chmod 600 {path}")
    line = text.split("\n", 1)[0].strip()
    if len(line) < _LEAST:
        raise BackupError(f"the passphrase in {path} is too short: it has at least {_LEAST} characters")
    return line.encode()


def seal(data: bytes, passphrase: bytes, about: bytes = b"") -> bytes:
    """The data, as only the passphrase opens it, and only together with `about`, which is not in it."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    salt, nonce = os.urandom(_SALT), os.urandom(_NONCE)
    return _MARK + salt + nonce + AESGCM(_key(passphrase, salt)).encrypt(nonce, data, _MARK + about)


def unseal(data: bytes, passphrase: bytes, about: bytes = b"", *, name: str) -> bytes:
    """
    What was sealed; `name` is that of the file.

    Raises:
        BackupError: the passphrase is another, or the data or `about` has changed.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if not data.startswith(_MARK):
        raise BackupError(f"{name} is not sealed as this Kettle does it")
    body = data[len(_MARK) :]
    salt, nonce, rest = body[:_SALT], body[_SALT : _SALT + _NONCE], body[_SALT + _NONCE :]
    try:
        return AESGCM(_key(passphrase, salt)).decrypt(nonce, rest, _MARK + about)
    except InvalidTag as error:
        raise BackupError(f"{name} is sealed with another passphrase, or the backup was changed") from error


def _key(passphrase: bytes, salt: bytes) -> bytes:
    from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

    return Scrypt(salt=salt, length=32, n=1 << 15, r=8, p=1).derive(passphrase)
