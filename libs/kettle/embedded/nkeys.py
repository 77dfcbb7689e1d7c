"""
NKeys: the identities of the roles on the bus.  A seed never leaves its file; the server knows only public keys.
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import nkeys  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]

from kettle.embedded.errors import EmbeddedError
from kettle.embedded.private_files import private_directory, write_private

if TYPE_CHECKING:
    from collections.abc import Callable


def new_seed() -> str:
    """The seed of a new user key."""
    encode = cast("Callable[[bytes, int], bytes]", nkeys.encode_seed)  # pyright: ignore[reportUnknownMemberType]
    return encode(os.urandom(32), nkeys.PREFIX_BYTE_USER).decode()


def public_key(seed: str) -> str:
    """The public key that belongs to a seed."""
    pair: Any = nkeys.from_seed(bytearray(seed.encode()))  # pyright: ignore[reportUnknownMemberType]
    return str(pair.public_key, "ascii")


def key_file(directory: Path, role: str) -> Path:
    """Where the seed of a role is kept."""
    return directory / f"{role}.nk"


def kept_key(directory: Path, role: str) -> str:
    """
    The public key of a role; its seed is made the first time and kept.

    Raises:
        EmbeddedError: the file is there and holds no seed.
    """
    path = key_file(directory, role)
    try:
        seed = path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        seed = new_seed()
        private_directory(directory)
        write_private(path, seed + "\n")
    try:
        return public_key(seed)
    except (nkeys.NkeysError, ValueError) as error:
        raise EmbeddedError(
            f"{path}: this is no NKey seed; remove the file to have a new one made."
        ) from error
