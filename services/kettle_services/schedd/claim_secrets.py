"""
The secrets of claims: made from a key of this access point and the claim's id, so that none needs to be stored.
"""

import hmac
from hashlib import sha256
from pathlib import Path

from kettle.auth.private_files import key_file
from kettle_wire.commands.startd import ClaimKey


class ClaimSecrets:
    """Derives secrets; two schedds with different keys cannot use each other's claims."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    @classmethod
    def at(cls, path: Path) -> "ClaimSecrets":
        """Read the key, or make one; the file is for its owner only (0600)."""
        try:
            return cls(key_file(path))
        except ValueError as error:
            raise ValueError(f"{error}; remove it, and claims end") from error

    def key(self, claim: str) -> ClaimKey:
        """The claim's id with its secret."""
        return ClaimKey(claim, hmac.new(self._key, claim.encode(), sha256).hexdigest())
