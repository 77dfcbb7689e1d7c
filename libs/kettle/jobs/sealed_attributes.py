"""
Attributes of jobs that hold secrets, sealed: programs hand tokens and passwords to their jobs in `Environment`, and to
their tasks in `KettleTasks`.

A queue seals them before it records anything, so that events, frames, archives, tables and their replicas hold only what nobody reads
without the queue's key; it opens them for the job's machine, and for who may see them.  What is sealed is bound to the job's owner:
copied into a job of somebody else it stays closed.  A text of an older record, which is not sealed, is taken as it is.
"""

import base64
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

import msgspec

from kettle.jobs.lower_names import lower_names
from kettle.jobs.private_attributes import PRIVATE
from kettle_wire.ads import Ad, Scalar

PREFIX: Final = "kettle-sealed-1:"
KEY_BYTES: Final = 32
SUFFIX: Final = ".seal"
"""How the file of a queue's key ends."""
_SPELLED: Final = {
    "environment": "Environment",
    "env": "Env",
    "kettletasks": "KettleTasks",
    "prominencedocument": "ProminenceDocument",
    "prominenceparameters": "ProminenceParameters",
    "prominenceworkflow": "ProminenceWorkflow",
}
"""What is sealed is spelled so in the ad, however its submitter spelled it, so that it is found without a look at all names."""
_NONCE_BYTES: Final = 12
_TICK_NS: Final = 1_000_000_000
"""File systems may not tell changes apart that are closer than this."""
_MOST: Final = 4096
"""Opened values that are remembered."""
_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final[Callable[[bytes], Scalar]] = msgspec.msgpack.Decoder(Scalar).decode

assert _SPELLED.keys() == PRIVATE, "each of these attributes has one spelling"


def is_sealed(value: object) -> bool:
    """Whether a value of an ad is still sealed."""
    return isinstance(value, str) and value.startswith(PREFIX)


def left_sealed(ad: Mapping[str, object]) -> bool:
    """Whether an ad has a value that could not be opened."""
    return any(is_sealed(ad.get(name)) for name in _SPELLED.values())


class AttributeSeal:
    """Seals with one key, and opens with several."""

    def __init__(self, keys: Sequence[bytes], directory: Path | None = None) -> None:
        """The first one seals; `directory`: where there may be more one day."""
        self._keys: Final = {key_id(key): key for key in keys}
        self._directory = directory
        self._looked = 0
        """When the directory had changed, as far as it is known; nanoseconds."""
        self._opened: dict[tuple[str, str], Scalar] = {}

    @classmethod
    def of_directory(cls, directory: Path) -> "AttributeSeal":
        """With the keys that are in a directory, now or when they are needed; to open only."""
        return cls([], directory)

    # -- before it is recorded ----------------------------------------------------------------------------------------

    def sealed(self, ad: Ad, owner: str) -> Ad:
        """The ad with what is private sealed; an ad without such values is given back as it is."""
        spelled = lower_names(ad)
        there = [(_SPELLED[name], spelled[name]) for name in PRIVATE & spelled.keys()]
        if len(spelled) == len(ad) and all(name == said and not ad[said] for name, said in there):
            return ad
        found = [name for name in ad if name.lower() in PRIVATE]
        return {
            _SPELLED[name.lower()] if name in found else name: self._seal(value, owner)
            if name in found
            else value
            for name, value in ad.items()
        }

    def sealed_table(
        self, columns: list[str], rows: list[list[Scalar]], owner: str
    ) -> tuple[list[str], list[list[Scalar]]]:
        """The attributes that jobs have of their own; equal values of one submission stay equal."""
        places = [place for place, name in enumerate(columns) if name.lower() in PRIVATE]
        if not places:
            return columns, rows
        known: dict[Scalar, Scalar] = {}
        named = [_SPELLED.get(name.lower(), name) for name in columns]
        changed = [list(row) for row in rows]
        for row in changed:
            for place in places:
                value = row[place]
                if value not in known:
                    known[value] = self._seal(value, owner)
                row[place] = known[value]
        return named, changed

    def _seal(self, value: Scalar, owner: str) -> Scalar:
        if not value:  # nothing is no secret, and most jobs have that
            return value
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 7 MB, for jobs with an environment

        id_, key = next(iter(self._keys.items()))
        nonce = os.urandom(_NONCE_BYTES)
        data = nonce + AESGCM(key[:KEY_BYTES]).encrypt(nonce, _encode(value), owner.encode())
        return f"{PREFIX}{id_}:{base64.b64encode(data).decode()}"

    # -- for those who may see it -------------------------------------------------------------------------------------

    def opened(self, ad: Ad, owner: str) -> Ad:
        """The ad of a job of `owner` with its values as they were; one that cannot be opened stays sealed."""
        for name in _SPELLED.values():
            if is_sealed(value := ad.get(name)):
                ad = {**ad, name: self._open(str(value), owner)}
        return ad

    def value(self, text: str, owner: str) -> Scalar:
        """A sealed value of a job of `owner` as it was; one that cannot be opened stays sealed."""
        return self._open(text, owner) if is_sealed(text) else text

    def _open(self, text: str, owner: str) -> Scalar:
        known = self._opened.get((owner, text))
        if known is None:
            known = self._decrypted(text, owner)
            if is_sealed(known):
                return known
            if len(self._opened) >= _MOST:
                self._opened.clear()
            self._opened[owner, text] = known
        return known

    def _decrypted(self, text: str, owner: str) -> Scalar:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        id_, _, data = text.removeprefix(PREFIX).partition(":")
        if (key := self._key(id_)) is None:
            return text
        try:
            raw = base64.b64decode(data, validate=True)
            return _decode(
                AESGCM(key[:KEY_BYTES]).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], owner.encode())
            )
        except (ValueError, InvalidTag, msgspec.MsgspecError):
            return text

    def _key(self, id_: str) -> bytes | None:
        if id_ not in self._keys and self._directory is not None:
            self._look(self._directory)
        return self._keys.get(id_)

    def _look(self, directory: Path) -> None:
        """Read the keys in the directory, if it has changed; a file that cannot be read has none."""
        try:
            changed = directory.stat().st_mtime_ns
        except OSError:
            return
        if changed == self._looked:
            return
        if time.time_ns() - changed > _TICK_NS:  # else another change may have the same time
            self._looked = changed
        for path in directory.glob(f"*{SUFFIX}"):
            with suppress(OSError):
                key = path.read_bytes()
                self._keys[key_id(key)] = key


def key_id(key: bytes) -> str:
    """The name of a key in what it has sealed, which tells nothing of the key."""
    return sha256(b"kettle seal" + key).hexdigest()[:16]
