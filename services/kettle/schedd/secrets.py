"""The secrets of claims: made from a key of this access point and the claim's id, so that none needs to be stored."""

import hmac
import os
from hashlib import sha256
from pathlib import Path

from kettle.wire.commands.startd import ClaimKey


class ClaimSecrets:
    """Derives secrets; two schedds with different keys cannot use each other's claims."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def at(cls, path: Path) -> "ClaimSecrets":
        """Read the key, or make one; the file is for its owner only (0600)."""
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            return cls(path.read_bytes())
        with os.fdopen(descriptor, "wb") as file:
            file.write(key := os.urandom(32))
        return cls(key)

    def key(self, claim: str) -> ClaimKey:
        """The claim's id with its secret."""
        return ClaimKey(claim, hmac.new(self._key, claim.encode(), sha256).hexdigest())
