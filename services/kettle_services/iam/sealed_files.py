"""
Texts that nobody reads but this process: enciphered with AES-GCM, each bound to its owner and name, under keys in a file that only the
account of this service can read.

A copy of the files without the keys, as in a backup or in a support case, tells nothing; and no file can be put in the place of
another.
"""

import logging
import os
from pathlib import Path
from threading import RLock
from typing import Annotated, Final

import msgspec
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from kettle.auth.private_files import private_directory, write_private
from kettle.runtime import SettingsError
from kettle_wire.subjects import token, untoken

_log: Final = logging.getLogger(__name__)
_KEY_BITS: Final = 256
_NONCE_BYTES: Final = 12


class SealedError(Exception):
    """A text cannot be read any more; the sentence says what to do."""


class _Key(msgspec.Struct, frozen=True):
    id: str
    created: float
    key: bytes

    def __repr__(self) -> str:
        """Without the secret."""
        return f"_Key({self.id})"


_Keys = Annotated[list[_Key], msgspec.Meta(min_length=1)]


class _Sealed(msgspec.Struct, frozen=True):
    key: str
    nonce: bytes
    text: bytes


class SealedFiles:
    """Those below one directory, and their keys, of which the newest seals."""

    def __init__(self, directory: Path, *, now: float) -> None:
        """
        Reads the keys, and makes the first one.

        Raises:
            SettingsError: their file is damaged.
        """
        self._directory: Final = private_directory(directory)
        self._path: Final = directory / "keys.json"
        self._lock = RLock()
        """What is sealed with the next key must not take the place of what somebody stores meanwhile."""
        try:
            self._keys = msgspec.json.decode(self._path.read_bytes(), type=_Keys)
        except FileNotFoundError:
            self._keys = []
            self._add(now)
        except msgspec.MsgspecError as error:
            raise SettingsError(
                f"{self._path} holds no keys ({error}): restore it, or remove {directory}, which forgets the stored"
                " credentials of everybody"
            ) from error

    def put(self, owner: str, name: str, text: str) -> None:
        """Keep a text, on the disk, in the place of the one before.  Raises OSError."""
        with self._lock:
            key, nonce = self._keys[-1], os.urandom(_NONCE_BYTES)
            data = AESGCM(key.key).encrypt(nonce, text.encode(), _bound(owner, name))
            sealed = _Sealed(key=key.id, nonce=nonce, text=data)
            private_directory(self._of(owner))
            write_private(self._file(owner, name), msgspec.json.encode(sealed).decode())

    def get(self, owner: str, name: str) -> str:
        """
        The text.

        Raises:
            SealedError: it is not there, was exchanged, or its key is lost.
        """
        try:
            sealed = msgspec.json.decode(self._file(owner, name).read_bytes(), type=_Sealed)
            (key,) = (each for each in self._keys if each.id == sealed.key)
            return AESGCM(key.key).decrypt(sealed.nonce, sealed.text, _bound(owner, name)).decode()
        except (OSError, msgspec.MsgspecError, ValueError, InvalidTag) as error:
            raise SealedError(
                f"the stored credential {name} of {owner} cannot be read ({type(error).__name__}): store it again"
            ) from error

    def remove(self, owner: str, name: str) -> None:
        """Keep it no longer.  Raises OSError."""
        with self._lock:
            self._file(owner, name).unlink(missing_ok=True)

    def rotate(self, *, now: float, lifetime: float) -> bool:
        """
        Exchange the key if it is older than `lifetime` seconds: everything is sealed with the next one before the old one is forgotten.
        Whether it was; raises OSError.
        """
        if now < self._keys[-1].created + lifetime:
            return False
        self._add(now)
        for path in self._directory.glob("*/*.sealed"):
            self._seal_again(untoken(path.parent.name), path.name.removesuffix(".sealed"))
        self._save(self._keys[-1:])
        return True

    def _seal_again(self, owner: str, name: str) -> None:
        with self._lock:
            try:
                self.put(owner, name, self.get(owner, name))
            except SealedError as error:  # its job says so, too
                _log.warning("%s", error)

    def _add(self, now: float) -> None:
        made = _Key(os.urandom(8).hex(), now, AESGCM.generate_key(_KEY_BITS))
        self._save([*self._keys, made])

    def _save(self, keys: list[_Key]) -> None:
        write_private(self._path, msgspec.json.encode(keys).decode())
        self._keys = keys

    def _of(self, owner: str) -> Path:
        return self._directory / token(owner)

    def _file(self, owner: str, name: str) -> Path:
        return self._of(owner) / f"{name}.sealed"


def _bound(owner: str, name: str) -> bytes:
    return f"{owner}\0{name}".encode()
