"""A key of an account of the bus, with which an iam under test signs for machines."""

from typing import Any, cast

import nkeys  # type: ignore[import-untyped]  # pyright: ignore[reportMissingTypeStubs]


def account_key() -> tuple[str, str]:
    """Its public key and its seed; always the same."""
    library = cast("Any", nkeys)
    seed: bytes = library.encode_seed(bytes(range(32)), library.PREFIX_BYTE_ACCOUNT)
    public: bytes = library.from_seed(bytearray(seed)).public_key
    return public.decode(), seed.decode()
