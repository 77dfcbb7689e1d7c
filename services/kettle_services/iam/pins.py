"""By what a machine that joins recognizes its pool."""

import ssl
from pathlib import Path

from kettle.pki import certificates
from kettle.runtime import SettingsError


def certificate(path: str) -> str:
    """
    The certificate in a file, in PEM; empty if no file is named.

    Raises:
        SettingsError: the file holds none.
    """
    if not path:
        return ""
    try:
        return ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(Path(path).read_text(encoding="ascii")))
    except (OSError, ValueError) as error:
        raise SettingsError(f"ca_certificate: {path} holds no certificate in PEM: {error}") from error


def pin_of(pem: str) -> str:
    """The pin of an authority as `kettle pki show` prints it, without the name of the hash."""
    return certificates.pin_of(certificates.load(pem.encode())).removeprefix("sha256:")
