"""
What TLS agrees upon where programs come to services of jobs: the name is one of a service, and the certificate one of the gateway's own
authority.

TLS 1.3 alone is spoken: a client's certificate travels encrypted in it, and each direction may end for itself.  No connection goes on from
an earlier one, whose certificate would not be looked at again.
"""

import ssl
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from kettle_services.gateway.domain.published_names import BadNameError, ServiceDomain, ServiceName

_PROTOCOLS: Final = ("postgresql",)
"""Programs of PostgreSQL go on only where this is agreed upon; who asks for something else goes on without."""
_MISSING_EXTENSION: Final = 109
"""The alert of RFC 8446 for who names nobody."""
_EXPIRED: Final = 10
"""OpenSSL's number of a certificate that is over."""
_SHOWN: Final = 80
"""Characters of what somebody unknown says that are shown."""


class NamedEngine(ssl.SSLObject):
    """One connection, which knows what its client has named."""

    wanted: ServiceName | None = None
    trouble: str = ""
    """Why that is none that is served here."""

    def do_handshake(self) -> None:
        """
        Go on.  A name that is no ASCII never comes to Python's callback: it is refused, and told to `sys.unraisablehook` with its bytes,
        which somebody unknown has chosen and no log is to have.
        """
        with _unheard():
            super().do_handshake()


def serve_names(context: ssl.SSLContext, domain: ServiceDomain, authority: str) -> None:
    """
    Have a context, which shows a certificate for all names below a domain, let in those whose certificate an authority (PEM) has signed.
    """

    def named(engine: Any, name: str | None, _context: ssl.SSLContext) -> int | None:
        if name is None:
            engine.trouble = "it names no service: TLS says a name in the extension server_name (SNI)"
            return _MISSING_EXTENSION
        try:
            engine.wanted = domain.read(name)
        except BadNameError as error:
            engine.trouble = f"it wants {name[:_SHOWN]!a}, and {error}"
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        return None

    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.load_verify_locations(cadata=authority)
    context.verify_mode = ssl.CERT_REQUIRED
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    context.set_alpn_protocols(_PROTOCOLS)
    context.sslobject_class = NamedEngine
    context.sni_callback = named


def why_not(error: OSError, engine: NamedEngine) -> str:
    """Why TLS was not agreed upon, as a part of a sentence."""
    if engine.trouble:
        return engine.trouble
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code == _EXPIRED:
            return "its certificate has expired: kettle connect --certificate makes another one"
        return f"its certificate is none that this gateway has made ({error.verify_message})"
    reason = getattr(error, "reason", "") or str(error)
    if reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
        return "it shows no certificate: kettle connect --certificate makes one"
    return f"TLS is not agreed upon ({reason})"


@contextmanager
def _unheard() -> Generator[None]:
    before = sys.unraisablehook
    sys.unraisablehook = _nothing
    try:
        yield
    finally:
        sys.unraisablehook = before


def _nothing(_unraisable: Any) -> None:
    """Nobody is told."""
