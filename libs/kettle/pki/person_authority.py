"""
The authority whose certificates people show where a program of theirs speaks TLS and nothing else.

Each has a text in it that nobody reads but this authority: what its person has shown for it.  So nothing is kept of a certificate, and what
was shown for it can be asked about whenever the certificate is shown.
"""

import os
from datetime import datetime
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from kettle.pki.certificates import CertificateError, Made, issue, make_authority, said_in, sign_client
from kettle.pki.session_authority import derived_key

SEALED: Final = x509.ObjectIdentifier("2.25.243172916108364028112786371498532071745")
"""Under this a certificate has its sealed text: a name that needs no registry (ITU-T X.667)."""
_LONGEST_NAME: Final = 64
_NONCE_BYTES: Final = 12
_OCTETS: Final = 0x04
_SHORT: Final = 0x80
"""DER says lengths below this in one byte."""
_KEY_BYTES: Final = 32


class PersonAuthority:
    """Its keys follow from a secret."""

    def __init__(self, secret: bytes, pool: str, *, now: datetime) -> None:
        """
        `secret`: of this service, at least 32 bytes; `pool`: its name.

        Raises CertificateError: the secret is too short.
        """
        key = derived_key(secret, f"kettle authority of people\0{pool}")
        name = f"services of pool {pool}"[:_LONGEST_NAME]
        self._made: Final = make_authority(name, now=now, key=key)
        drawn = HKDF(hashes.SHA256(), _KEY_BYTES, salt=None, info=b"kettle what people have shown")
        self._seal: Final = AESGCM(drawn.derive(secret))

    @property
    def certificate(self) -> bytes:
        """Its own certificate (PEM)."""
        return self._made.certificate

    def sign(self, request: bytes, person: str, shown: bytes, *, now: datetime, seconds: float) -> bytes:
        """
        A certificate (PEM) for a person with this request (PEM), good for so many seconds; `shown`: the text that is sealed in it.

        Raises CertificateError: it is no request, or nobody proves with it to have its key.
        """
        nonce = os.urandom(_NONCE_BYTES)
        sealed = nonce + self._seal.encrypt(nonce, shown, None)
        said = x509.UnrecognizedExtension(SEALED, _octets(sealed))
        return sign_client(self._made, request, person[:_LONGEST_NAME], now=now, seconds=seconds, said=said)

    def shown(self, certificate: bytes, now: datetime) -> bytes:
        """
        The text that is sealed in a certificate (DER) whose signature was checked.

        Raises CertificateError: there is none, or the certificate is over, which a connection that goes on from an earlier one would not
        be told.
        """
        try:
            found = x509.load_der_x509_certificate(certificate)
        except ValueError as error:
            raise CertificateError("what is shown is no certificate") from error
        if now >= found.not_valid_after_utc:
            raise CertificateError("the certificate has expired: ask for another one")
        sealed = said_in(found, SEALED)
        sealed = sealed[_head_bytes(sealed) :]
        try:
            return self._seal.decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except (ValueError, InvalidTag) as error:
            raise CertificateError("the certificate is none that was made for a person") from error

    def issue(self, name: str, *, now: datetime) -> Made:
        """What a server shows that is reached under this name."""
        return issue(self._made, [name], "server", now=now)


def _octets(data: bytes) -> bytes:
    """As DER has bytes, which is what a value in a certificate is made of."""
    size = len(data)
    if size < _SHORT:
        return bytes((_OCTETS, size)) + data
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes((_OCTETS, _SHORT | len(length))) + length + data


def _head_bytes(octets: bytes) -> int:
    """How much of that is not the bytes themselves."""
    length = octets[1:2]
    return 2 + (length[0] & ~_SHORT if length and length[0] & _SHORT else 0)
