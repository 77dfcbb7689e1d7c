"""
What listens for clients over TLS, such as pages over HTTP: one place for its certificate, and for a new one.

    context = tls_context(rt, certificate=..., key=..., client_ca=...)
    site = web.TCPSite(runner, host, port, ssl_context=context)

At SIGHUP, as by `kettle reconfig`, the files are read again: connections that there are stay, new ones see what the files
hold by then.  Files that cannot be used change nothing.
"""

import logging
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from kettle.pki.certificates import CertificateError, remark
from kettle.pki.contexts import Listener
from kettle.pki.explanations import UntrustedError
from kettle.runtime.settings_problems import SettingsError

_log: Final = logging.getLogger(__name__)


class Rereading(Protocol):
    """What reads files again at SIGHUP: a `Runtime`."""

    def on_reread(self, reread: Callable[[], None]) -> None:
        """Call this, too."""
        ...


def tls_context(rt: Rereading, *, certificate: str, key: str, client_ca: str = "") -> ssl.SSLContext:
    """
    For a listener that lasts as long as the service; with `client_ca` it lets in only clients with a certificate of it.

    Raises:
        SettingsError: the files cannot be used.
    """
    files = Listener(certificate=certificate, key=key, client_ca=client_ca)
    try:
        context = files.context()
    except UntrustedError as error:
        raise SettingsError(str(error)) from error
    _warn(certificate)

    def renew() -> None:
        try:
            files.renew(context)
        except UntrustedError as error:
            raise SettingsError(f"the certificate stays as it was: {error}") from error
        _warn(certificate)

    rt.on_reread(renew)
    return context


def _warn(certificate: str) -> None:
    try:
        said = remark(Path(certificate), datetime.now(UTC))
    except CertificateError as error:
        said = str(error)
    if said:
        _log.warning("%s", said)
