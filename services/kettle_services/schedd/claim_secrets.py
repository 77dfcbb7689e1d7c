"""
The secrets of claims: made from a key of this access point and the claim's id, so that none needs to be stored.
"""

import hmac
import os
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from kettle_wire.commands.startd import ClaimKey

KEY_BYTES: Final = 32


class ClaimSecrets:
    """Derives secrets; two schedds with different keys cannot use each other's claims."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def at(cls, path: Path) -> "ClaimSecrets":
        """Read the key, or make one; the file is for its owner only (0600)."""
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            draft = path.with_name(f".{path.name}.{os.getpid()}")
            with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                file.write(os.urandom(KEY_BYTES))
                file.flush()
                os.fsync(file.fileno())
            with suppress(FileExistsError):  # somebody else was faster: his key counts
                path.hardlink_to(draft)
            draft.unlink()
        key = path.read_bytes()
        if len(key) < KEY_BYTES:
            raise ValueError(
                f"{path} is no key: it has {len(key)} bytes, not {KEY_BYTES}; remove it, and claims end"
            )
        return cls(key)

    def key(self, claim: str) -> ClaimKey:
        """The claim's id with its secret."""
        return ClaimKey(claim, hmac.new(self._key, claim.encode(), sha256).hexdigest())
