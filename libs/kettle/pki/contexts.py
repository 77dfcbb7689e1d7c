"""
What `ssl` is told before a connection: whom a client trusts, and what a listener shows.

TLS 1.2 is the oldest version, and names are always verified.  A client that is given an authority trusts no other, in
particular none of those that the system knows.
"""

import ssl
from pathlib import Path

import msgspec

from kettle.pki.explanations import UntrustedError


class Listener(msgspec.Struct, frozen=True, kw_only=True):
    """The files of what listens."""

    certificate: str
    """Path of its certificate, with those between it and the authority behind it (PEM)."""
    key: str
    """Path of the key."""
    client_ca: str = ""
    """Path of the certificates of authorities; with it only clients whose certificate one of them has signed get in."""

    def context(self) -> ssl.SSLContext:
        """What its connections go by.  Raises UntrustedError if the files cannot be used."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._show(context)
        if self.client_ca:
            _trust(context, self.client_ca)
            context.verify_mode = ssl.CERT_REQUIRED
        return context

    def renew(self, context: ssl.SSLContext) -> None:
        """
        Show new connections what the files hold by now; those that there are stay as they are.

        Raises UntrustedError if the files cannot be used; then nothing is changed.
        """
        self._show(
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        )  # what fails half-way must not fail in the one that is in use
        self._show(context)

    def _show(self, context: ssl.SSLContext) -> None:
        for path in (self.certificate, self.key):
            _readable(path)
        try:
            context.load_cert_chain(self.certificate, self.key, password=_no_password)
        except (ssl.SSLError, ValueError, OSError) as error:
            reason = getattr(error, "reason", "") or ""
            why = (
                "do not belong together"
                if "MISMATCH" in reason
                else f"are no certificate and key in PEM form ({reason or error})"
            )
            raise UntrustedError(f"{self.certificate} and {self.key} {why}") from error


def client_context(ca: str = "") -> ssl.SSLContext:
    """
    What a client goes by: `ca` is the path of the authority's certificate, or of several; empty: those of the system.

    Raises UntrustedError if the file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca:
        _trust(context, ca)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    return context


def _trust(context: ssl.SSLContext, ca: str) -> None:
    _readable(ca)
    try:
        context.load_verify_locations(cafile=ca)
    except (ssl.SSLError, OSError) as error:
        raise UntrustedError(
            f"{ca} holds no certificates in PEM form; it is the file ca.pem of the pool's administrator"
        ) from error


def _readable(path: str) -> None:
    try:
        with Path(path).open("rb"):
            pass
    except OSError as error:
        raise UntrustedError(f"{path} cannot be read: {error.strerror}") from error


def _no_password() -> bytes:
    raise ValueError("the key has a password, and nobody is there to type it")
