"""
The key pairs by which NATS knows operators, accounts and users (NKeys, Ed25519).

A seed never leaves its holder; everybody else knows the public key.
"""

import os
from enum import Enum
from typing import TYPE_CHECKING, Any, cast

import nkeys as untyped  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

if TYPE_CHECKING:
    from collections.abc import Callable

_nkeys: Any = untyped


class TrustError(ValueError):
    """
    A file in which keys, or what is said of them, are kept cannot be used; the message is a sentence that names it.
    """


class SeedError(TrustError):
    """A text that should be the seed of a key is none."""


class Kind(Enum):
    """What a key stands for, which the first letter of its public form tells."""

    OPERATOR = _nkeys.PREFIX_BYTE_OPERATOR
    ACCOUNT = _nkeys.PREFIX_BYTE_ACCOUNT
    USER = _nkeys.PREFIX_BYTE_USER


class KeyPair:
    """A key of ours, by its seed."""

    def __init__(self, seed: str) -> None:
        """Raises SeedError if that is no seed."""
        self.seed = seed.strip()
        try:
            self._pair = _nkeys.from_seed(bytearray(self.seed.encode("ascii")))
        except (_nkeys.NkeysError, ValueError) as error:
            raise SeedError("this is no NKey seed") from error
        self.public = str(self._pair.public_key, "ascii")

    @classmethod
    def new(cls, kind: Kind) -> "KeyPair":
        """A key that nobody has had before."""
        encode = cast("Callable[[bytes, int], bytes]", _nkeys.encode_seed)
        return cls(encode(os.urandom(32), kind.value).decode("ascii"))

    def sign(self, data: bytes) -> bytes:
        """The 64 bytes of the signature."""
        signature: bytes = self._pair.sign(data)
        return signature
