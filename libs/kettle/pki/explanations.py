"""
Why a connection with TLS failed: what, where, and what to do next.

It does not load `ssl` itself, so that those who only catch the error do not pay for it.
"""

from typing import Final

_ADVICE: Final = {
    9: "is not valid yet: compare the clocks of both machines",
    10: "has expired: its administrator renews it (kettle pki renew) and says: kettle reconfig",
    62: "is for other names: connect by one of the names that it has (kettle pki show), or have one issued for this name",
    64: "is for other names: connect by one of the names that it has (kettle pki show), or have one issued for this address",
}
_AUTHORITY: Final = frozenset({2, 18, 19, 20, 21})
"""Codes of OpenSSL by which nobody whom we trust has signed the certificate."""
_PLAIN: Final = frozenset(
    {
        "WRONG_VERSION_NUMBER",
        "HTTP_REQUEST",
        "UNKNOWN_PROTOCOL",
        "PACKET_LENGTH_TOO_LONG",
        "RECORD_LAYER_FAILURE",
    }
)
_GONE: Final = frozenset({"UNEXPECTED_EOF_WHILE_READING", "SSL_ERROR_EOF"})
_CLIENT: Final = frozenset(
    {"TLSV13_ALERT_CERTIFICATE_REQUIRED", "SSLV3_ALERT_HANDSHAKE_FAILURE", "SSLV3_ALERT_BAD_CERTIFICATE"}
)


class UntrustedError(OSError):
    """
    A connection is not encrypted to whom it is meant for, so nothing was sent; the message is a sentence.
    """


def is_plain(error: BaseException) -> bool:
    """Whether what answered does not speak TLS."""
    return getattr(error, "reason", "") in _PLAIN


def is_distrusted(error: BaseException) -> bool:
    """Whether it was the certificate of the other side that was not accepted."""
    return bool(getattr(error, "verify_code", 0))


def wants_certificate(error: BaseException) -> bool:
    """
    Whether the server goes on only with clients that show a certificate; it says so after the handshake.
    """
    return getattr(error, "reason", "") in _CLIENT


def failed(error: OSError, where: str, ca: str, *, setting: str = "nats_ca") -> OSError:
    """
    The sentence about a handshake that failed; that the other side went away says nothing about whom to trust.

    `ca` is the path of the authority, empty if those of the system are trusted; `setting` is what would name one.
    """
    if isinstance(error, ConnectionError) or getattr(error, "reason", "") in _GONE:
        return ConnectionAbortedError(f"{where} broke off while the encryption was agreed upon")
    return UntrustedError(_sentence(error, where, ca, setting))


def _sentence(error: OSError, where: str, ca: str, setting: str) -> str:
    code = getattr(error, "verify_code", 0)
    if code in _AUTHORITY:
        whom = f"the authority in {ca}" if ca else "an authority that this system knows"
        next_ = (
            "take the pool's ca.pem from its administrator"
            if ca
            else f"name the pool's own authority ({setting})"
        )
        return f"the certificate of {where} is not signed by {whom}: it is another server, or {next_}"
    if code:
        said = getattr(error, "verify_message", "") or str(error)
        return f"the certificate of {where} {_ADVICE.get(code, f'is not accepted: {said}')}"
    if is_plain(error):
        return plain(where)
    reason = getattr(error, "reason", "") or str(error) or type(error).__name__
    if reason in _CLIENT:
        return f"{where} wants a certificate of the client, or knows no version of TLS that we do ({reason})"
    return f"{where} and we cannot agree upon an encryption ({reason})"


def plain(where: str) -> str:
    """The sentence about a server that does not encrypt."""
    return (
        f"{where} does not speak TLS, and this pool's connections are encrypted: nothing was sent to it; "
        "it is another server, or its administrator gives it a certificate (docs/how-to/encrypt-connections.md)"
    )
