"""Certificates with which people's programs come to services of jobs by TLS."""

from typing import Annotated

import msgspec

from kettle_wire.rest.route import Moment, Route


class NameServiceCertificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    Make a certificate with which your programs come to services of jobs by TLS (`tls` of a service): to those that you may use at the
    moment at which they connect. It ends with the token of this request, and after twelve hours.
    """


class MakeServiceCertificate(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """For whom it is, the token of the request says."""

    request: Annotated[str, msgspec.Meta(max_length=16_384)]
    """A request for a certificate (PKCS #10 in PEM) for a key on the curve P-256, which stays where it was made."""
    seconds: Annotated[float, msgspec.Meta(ge=60.0)] | None = None
    """So long it is to be good; at most twelve hours."""


class ServiceCertificate(msgspec.Struct, frozen=True, kw_only=True):
    """A certificate."""

    certificate: str
    """PEM."""
    authority: str
    """
    The authority (PEM) that signs what the gateway shows under the names of services; empty: one that systems know.
    """
    expires: Moment


MAKE_SERVICE_CERTIFICATE = Route(
    "POST",
    "/service-certificates",
    "make_service_certificate",
    parameters=NameServiceCertificate,
    body=MakeServiceCertificate,
    reply=ServiceCertificate,
    level="WRITE",
    errors=(404, 413, 415, 422),
)
