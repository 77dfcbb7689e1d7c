"""
The certificate authority of one session: its key follows from a secret of the service and the session's id, and is kept nowhere.

The members of a session, jobs and their owner's programs, believe this authority and no other.  Each makes a key of its own
and asks for a certificate with a request, so that no key ever travels.
"""

from datetime import datetime
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kettle.pki.certificates import CertificateError, make_authority, sign_request

SHORTEST_SECRET: Final = 32
"""Bytes."""
_CURVE: Final = ec.SECP256R1()
_ORDER: Final = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Of the curve's group: keys are the numbers from 1 to this, which is excluded."""
_DRAWN: Final = 48
"""Bytes that a key is made of: 16 more than it has, so that no key is likelier than another."""


class SessionAuthority:
    """Signs the certificates of one session."""

    def __init__(self, secret: bytes, session: str, *, now: datetime) -> None:
        """
        `secret`: what the service keeps, at least `SHORTEST_SECRET` bytes; `session`: the session's id.

        Raises:
            CertificateError: the secret is too short.
        """
        self._made: Final = make_authority(
            f"session {session}"[:64],
            now=now,
            key=derived_key(secret, f"kettle session authority\0{session}"),
        )

    @property
    def certificate(self) -> bytes:
        """
        Its own certificate (PEM); of one session they differ by their times and numbers, and each is as good.
        """
        return self._made.certificate

    def sign(self, request: bytes, *, now: datetime) -> bytes:
        """
        A certificate (PEM) for a member with this request (PEM), by which it may both listen and connect.

        Raises:
            CertificateError: it is no request, or nobody proves with it to have its key.
        """
        return sign_request(self._made, request, now=now)


def derived_key(secret: bytes, purpose: str) -> bytes:
    """
    The key (PEM) of an authority: equal for each call with the same purpose, and without the secret for nobody.

    Raises:
        CertificateError: the secret is too short.
    """
    if len(secret) < SHORTEST_SECRET:
        raise CertificateError(f"a secret of {len(secret)} bytes is too short: {SHORTEST_SECRET} are needed")
    drawn = HKDF(hashes.SHA256(), _DRAWN, salt=None, info=purpose.encode()).derive(secret)
    number = int.from_bytes(drawn, "big") % (_ORDER - 1) + 1
    key = ec.derive_private_key(number, _CURVE)
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
