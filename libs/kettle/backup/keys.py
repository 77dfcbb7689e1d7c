"""Whether the keys of a backup fit each other: a pool that comes back with others knows nobody any more."""

import json
import tomllib
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Final

from kettle.auth.private_files import KEY_BYTES
from kettle.auth.trust.keys import KeyPair, SeedError

_KEYS: Final = (".claims", ".seal")
"""Endings of files with 32 random bytes."""
_USER_JWT: Final = "-----BEGIN NATS USER JWT-----"
_USER_SEED: Final = "-----BEGIN USER NKEY SEED-----"


def misfits(files: Mapping[str, bytes]) -> Iterator[str]:
    """One sentence for each key or file of settings that cannot be used."""
    signers: set[str] = set()
    for name, data in files.items():
        path = PurePosixPath(name)
        if path.suffix == ".nk":
            try:
                signers.add(KeyPair(data.decode("ascii")).public)
            except (SeedError, UnicodeDecodeError) as error:
                yield f"{name} holds no key: {error}"
        elif path.suffix in _KEYS and len(data) < KEY_BYTES:
            yield f"{name} is no key: it has {len(data)} bytes, not {KEY_BYTES}"
        elif path.suffix == ".toml":
            try:
                tomllib.loads(data.decode())
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                yield f"{name} cannot be read: {error}"
    for name, data in files.items():
        if name.endswith(".creds"):
            yield from _of_credential(name, data, signers)


def _of_credential(name: str, data: bytes, signers: set[str]) -> Iterator[str]:
    """A credential is a key, and a statement about this key by a key of the pool."""
    try:
        text = data.decode("ascii")
        seed = text.split(_USER_SEED, 1)[1].split()[0] if _USER_SEED in text else text.strip()
        public = KeyPair(seed).public
        if _USER_JWT not in text:
            return
        body = text.split(_USER_JWT, 1)[1].split()[0].split(".")[1]
        stated = json.loads(urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (SeedError, ValueError, IndexError) as error:
        if not name.endswith("sentinel.creds"):
            yield f"{name} holds no credential: {error}"
        return
    if stated.get("sub") != public:
        yield f"{name} has a statement about another key than its own"
    elif signers and stated.get("iss") not in signers:
        yield f"{name} is signed by a key that is not in the backup: the bus will not let it in"
