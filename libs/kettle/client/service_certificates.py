"""
A certificate with which programs that speak TLS come to services of jobs, in the files that such programs read.

    key.pem           made here, and never sent
    certificate.pem   for the person, until a time
    ca.pem            whom to trust for what the gateway shows; not there where the system knows its authority
"""

import os
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_files import write_private
from kettle.client.errors import ClientError
from kettle.client.published import GatewayAccess, ask_gateway
from kettle_wire.rest.service_certificates import (
    MAKE_SERVICE_CERTIFICATE,
    MakeServiceCertificate,
    ServiceCertificate,
)

KEY: Final = "key.pem"
CERTIFICATE: Final = "certificate.pem"
AUTHORITY: Final = "ca.pem"


class CertificateFiles(msgspec.Struct, frozen=True, kw_only=True):
    """Where they are, and until when they are good."""

    key: Path
    certificate: Path
    authority: Path | None
    """None: the authorities of the system are to be trusted."""
    expires: datetime


async def fetch_certificate(access: GatewayAccess, directory: Path) -> CertificateFiles:
    """
    Make a key, have a certificate made for it, and keep both in a directory, in the place of those that are there.

    Raises ClientError: the gateway makes none, or the files cannot be written.
    """
    from kettle.pki.certificates import make_request  # 0.1 s to import

    key, request = make_request("client")
    body = msgspec.json.encode(MakeServiceCertificate(request=request.decode()))
    route = MAKE_SERVICE_CERTIFICATE
    made = await ask_gateway(access, route.method, route.path, ServiceCertificate, body)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = directory / AUTHORITY
        if made.authority:
            write_private(authority, made.authority)
        else:
            authority.unlink(missing_ok=True)
        # Who reads both between the two finds what does not belong together, and reads again.
        kept_key = write_private(directory / KEY, key)
        certificate = write_private(directory / CERTIFICATE, made.certificate)
    except OSError as error:
        raise ClientError(
            f"{error.filename or directory} cannot be written: {os.strerror(error.errno or 0)}"
        ) from error
    return CertificateFiles(
        key=kept_key.absolute(),
        certificate=certificate.absolute(),
        authority=authority.absolute() if made.authority else None,
        expires=made.expires,
    )
