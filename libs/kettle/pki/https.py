"""
Clients of HTTP that trust one authority: how a machine gets to know it by its pin, and why a request failed.
"""

import ssl
from typing import Final, cast

import aiohttp

from kettle.pki.certificates import CertificateError, pins_in
from kettle.pki.contexts import client_context
from kettle.pki.explanations import UntrustedError, failed

AUTHORITY: Final = "/ca.pem"
"""Where a listener serves the certificate of its authority."""
_LONGEST: Final = 64 * 1024
_WITHIN_S: Final = 10.0


async def fetch_authority(url: str, pin: str) -> bytes:
    """
    The certificate (PEM) of the authority of the server at `url`, if it is the one that the pin identifies.

    The server is not known yet, so nothing is sent but this question; a connection that trusts the answer follows
    before anything else is.

    Raises:
        UntrustedError: the server cannot be reached, gives no certificate, or one with another pin.
    """
    place = url.rstrip("/") + AUTHORITY
    unknown = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    unknown.minimum_version = ssl.TLSVersion.TLSv1_2
    unknown.check_hostname = False
    unknown.verify_mode = ssl.CERT_NONE  # the pin proves what is answered
    timeout = aiohttp.ClientTimeout(total=_WITHIN_S)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(place, ssl=unknown, allow_redirects=False) as answer,
        ):
            if answer.status != 200:
                raise UntrustedError(
                    f"{place} answers {answer.status}: it is no server of a pool, or none with an authority"
                )
            data = await answer.content.read(_LONGEST)
    except aiohttp.ClientError as error:
        raise why(error, place) from error
    except TimeoutError as error:
        raise UntrustedError(f"{place} did not answer within {_WITHIN_S:g} seconds") from error
    try:
        found = pins_in(data)
    except CertificateError as error:
        raise UntrustedError(f"{place} gives no certificate: {error}") from error
    if pin not in found:
        raise UntrustedError(
            f"the authority of {place} has the pin {', '.join(found)}, not {pin}: it is another pool's server, or somebody is between; "
            "compare with kettle pki show on the pool's server"
        )
    return found[pin]


def connector(ca: str) -> aiohttp.TCPConnector:
    """For a session that trusts no other authority than that of the file.  Raises UntrustedError."""
    return aiohttp.TCPConnector(ssl=client_context(ca))


def why(error: aiohttp.ClientError, where: str, ca: str = "") -> OSError:
    """The sentence about a request that failed before there was an answer."""
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        cause = error.certificate_error
        return failed(cause, where, ca) if isinstance(cause, OSError) else UntrustedError(f"{where}: {cause}")
    if isinstance(error, aiohttp.ClientConnectorSSLError):
        broken = cast("OSError", error.os_error)  # pyright: ignore[reportUnknownMemberType]  # it has no type
        return failed(broken, where, ca)
    return UntrustedError(f"{where} cannot be reached: {error}")
