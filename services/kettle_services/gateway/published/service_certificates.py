"""
Certificates with which people's programs come to services of jobs by TLS: made for who shows a token, for a while, and for that person.

What was shown is sealed in the certificate, and asked about at each connection as it is at each request of HTTP: a certificate gives
nothing that the token would not give at that moment.
"""

import logging
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_files import key_file
from kettle.pki.certificates import CertificateError, Made
from kettle.pki.person_authority import PersonAuthority
from kettle.runtime import SettingsError
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.credential import Credential
from kettle_services.gateway.rest.persons import Person
from kettle_services.gateway.rest.refusals import RequestRefused, refused_field
from kettle_wire.rest.problem import ProblemCode
from kettle_wire.rest.service_certificates import MakeServiceCertificate, ServiceCertificate

LIFE_S: Final = 12 * 3600.0
"""So long one is good at most; it ends with what was shown for it."""
_FILE: Final = "certificates.key"

_log: Final = logging.getLogger(__name__)


class _Shown(msgspec.Struct, frozen=True, omit_defaults=True):
    """What somebody has shown: one of the two."""

    token: str = ""
    account: str = ""

    def __repr__(self) -> str:
        """Without the secret."""
        return "_Shown(...)"


class ServiceCertificates:
    """Makes them, and opens what is sealed in them."""

    def __init__(self, directory: Path, pool: str, trusted: str | None) -> None:
        """
        `directory`: of the secret from which the keys follow; `trusted`: the certificate (PEM) of the authority that programs are to trust
        for what the gateway shows, empty: those of their systems; None: ours, which signs that too.

        Raises SettingsError: the secret cannot be used.
        """
        try:
            self._authority: Final = PersonAuthority(key_file(directory / _FILE), pool, now=datetime.now(UTC))
        except (OSError, ValueError, CertificateError) as error:
            raise SettingsError(f"the secret of certificates of people: {error}") from error
        self.certificate: Final = self._authority.certificate.decode()
        """Of the authority that signs them (PEM)."""
        self._trusted: Final = self.certificate if trusted is None else trusted

    async def make(self, asked: Asked) -> Answer:
        """See `MakeServiceCertificate`."""
        body: MakeServiceCertificate = asked.body
        person, now = asked.person, datetime.now(UTC)
        life = min(body.seconds or LIFE_S, LIFE_S, (person.expires or float("inf")) - now.timestamp())
        shown = msgspec.msgpack.encode(_shown(person))
        try:
            made = self._authority.sign(body.request.encode(), person.name, shown, now=now, seconds=life)
        except CertificateError as error:
            raise refused_field(
                "/body/request", str(error), code=ProblemCode.BODY_INVALID, status=422
            ) from error
        expires = now + timedelta(seconds=life)
        _log.info("%s has a certificate for services of jobs until %s", person.name, expires.isoformat())
        return Answer(ServiceCertificate(certificate=made.decode(), authority=self._trusted, expires=expires))

    def opened(self, certificate: bytes) -> Credential:
        """
        What was shown for a certificate (DER), whose signature was checked; raises RequestRefused: it is over, or none of ours.
        """
        try:
            shown = msgspec.msgpack.decode(
                self._authority.shown(certificate, datetime.fromtimestamp(time.time(), UTC)), type=_Shown
            )
        except (CertificateError, msgspec.MsgspecError) as error:
            raise RequestRefused(401, ProblemCode.TOKEN_UNTRUSTED, str(error)) from error
        return Credential(token=shown.token, account=shown.account)

    def issue(self, name: str) -> Made:
        """What the gateway shows where it has no certificate for this name."""
        return self._authority.issue(name, now=datetime.now(UTC))


def _shown(person: Person) -> _Shown:
    """What was shown of this person, in a form that can be asked about later."""
    credential = person.credential
    if credential is None or credential.account:
        return _Shown(account=person.principal.text)
    return _Shown(token=credential.token)
