"""What an iam says to everybody over HTTP of how people come into its pool."""

from typing import Final

import msgspec

WAY_IN: Final = "/.well-known/kettle-pool"
"""The path of the document."""


class WayIn(msgspec.Struct, frozen=True, kw_only=True):
    """The document: nothing in it is secret."""

    pool: str
    iam: str
    """The address of the iam, which is also its name as an issuer."""
    nats_url: str
    """Where the bus is."""
    ca: str = ""
    """The certificate, in PEM, by which the bus is known; empty: it is not encrypted, or the system knows it."""
    sentinel: str = ""
    """
    What people show to the bus together with a token, as the text of a file of NATS credentials; empty: it takes no tokens.
    """
    trust_domain: str = ""
    """The name by which the pool's own IDTOKENS call it."""
    issuers: dict[str, list[str]] = {}
    """Whose tokens are accepted besides the iam's own, each with the audiences that they may have."""
