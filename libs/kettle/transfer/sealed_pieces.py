"""
Pieces of input files as they are in the object store: readable for those alone who know the file's SHA-256.

The server gives any machine what is stored on a subject, and takes a `*` for one, so that a machine can read the store without
knowing what is in it.  So a piece lies there under a name from which nobody learns the SHA-256, encrypted with a key that is made
of it.  The same file gives the same pieces, no matter who stores it.
"""

from hashlib import sha256

from nacl.bindings import crypto_secretbox, crypto_secretbox_NONCEBYTES, crypto_secretbox_open
from nacl.exceptions import CryptoError

OVERHEAD = 16
"""Bytes that a piece grows by."""


def name(digest: str) -> str:
    """Under which the pieces of a file lie; `digest` is its SHA-256 in hexadecimal digits."""
    return _made("name", digest).hex()


def sealed(digest: str, offset: int, piece: bytes) -> bytes:
    """A piece as it is stored; `offset` is where it begins in the file."""
    return crypto_secretbox(piece, _nonce(offset, len(piece)), _made("key", digest))


def opened(digest: str, offset: int, stored: bytes) -> bytes | None:
    """The piece; None: it is none of this file."""
    try:
        return crypto_secretbox_open(stored, _nonce(offset, len(stored) - OVERHEAD), _made("key", digest))
    except CryptoError:
        return None


def _made(what: str, digest: str) -> bytes:
    return sha256(f"kettle object {what} {digest}".encode()).digest()


def _nonce(offset: int, length: int) -> bytes:
    """Another one for each piece of a file, also if it is cut into pieces of another size."""
    return (offset.to_bytes(8, "little") + max(0, length).to_bytes(8, "little")).ljust(
        crypto_secretbox_NONCEBYTES, b"\0"
    )
