"""
Certificates of sessions, by which the members of one, and the programs of those who may use it, know each other.

The authority of a session follows from a secret of this service; no key of anybody travels, and nothing is recorded.
"""

import asyncio
from datetime import UTC, datetime

from kettle.bus.ports import RefusedError
from kettle_services.sessions.access import SessionAccess
from kettle_services.sessions.kept_files import KeptFiles
from kettle_wire.codes import RefusalCode
from kettle_wire.commands.sessions import SessionCertificate, SignCertificate
from kettle_wire.identity import Identity


class Certificates:
    """Signs them."""

    def __init__(self, kept: KeptFiles, access: SessionAccess) -> None:
        self._kept = kept
        self._access = access

    async def signed(self, request: SignCertificate, caller: Identity) -> SessionCertificate:
        """One for somebody who may use the session."""
        session = self._access.shown(request.session, caller)
        return await self.sign(session.id, request.request)

    async def sign(self, session: str, request: bytes) -> SessionCertificate:
        """One for who has made this request; raises RefusedError: it is none."""
        return await asyncio.to_thread(self._sign, session, request)

    def _sign(self, session: str, request: bytes) -> SessionCertificate:
        from kettle.pki.certificates import CertificateError
        from kettle.pki.session_authority import SessionAuthority  # only a few sessions have certificates

        now = datetime.now(UTC)
        authority = SessionAuthority(self._kept.secret(), session, now=now)
        try:
            signed = authority.sign(request, now=now)
        except CertificateError as error:
            raise RefusedError(RefusalCode.MALFORMED, str(error)) from error
        return SessionCertificate(certificate=signed, authority=authority.certificate)
