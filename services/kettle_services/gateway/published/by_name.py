"""
Services of jobs that programs reach by TLS and a name: where that is, what is shown there, and what listens.
"""

import asyncio
import logging
from pathlib import Path
from typing import Final

from kettle.auth.private_files import write_private
from kettle.embedded.ports import kept_port
from kettle.pki.certificates import CertificateError, facts, load
from kettle.pki.contexts import Listener
from kettle.runtime import Runtime, SettingsError
from kettle.runtime.tls_listener import tls_context
from kettle_services.gateway.domain.published_names import ServiceDomain
from kettle_services.gateway.published.service_access import ServiceAccess
from kettle_services.gateway.published.service_certificates import ServiceCertificates
from kettle_services.gateway.published.service_listener import ServiceListener
from kettle_services.gateway.published.service_tls import serve_names
from kettle_services.gateway.published.switching import Passage
from kettle_services.gateway.published.uses import Uses
from kettle_services.gateway.rest.application import RequestLimits
from kettle_services.gateway.rest.persons import Persons
from kettle_services.gateway.settings import GatewaySettings
from kettle_wire.jobs import JobId

_PORT_FILE: Final = "services_tls_port"
_SHOWN_FILE: Final = "services-tls.pem"
_RENEWED_S: Final = 30 * 86400.0
"""A certificate of our own is good for a year, and is made again at each start and so often."""

_log: Final = logging.getLogger(__name__)


class ServicesByName:
    """Of one gateway."""

    def __init__(self, rt: Runtime, settings: GatewaySettings, directory: Path, trusted: str) -> None:
        """
        `directory`: the gateway's; `trusted`: the certificate (PEM) of the authority from which `http_certificate` comes, empty: one that
        systems know.

        Raises SettingsError: a port, a secret or a certificate cannot be used.
        """
        self._settings: Final = settings
        self._domain: Final = ServiceDomain(settings.services_domain)
        self._port: Final = settings.services_tls_port or kept_port(directory / _PORT_FILE)
        own = not settings.http_certificate
        self.certificates: Final = ServiceCertificates(directory, settings.pool, None if own else trusted)
        self._shown: Final = directory / _SHOWN_FILE
        files = str(self._shown), str(self._shown)
        if own:
            self._issue()
            rt.loop(self._renew(), name="certificate of services")
        else:
            _require_name(settings.http_certificate, settings.services_domain)
            files = settings.http_certificate, settings.http_key
        self._context: Final = tls_context(rt, certificate=files[0], key=files[1])
        serve_names(self._context, self._domain, self.certificates.certificate)

    def place(self, service: str, job: JobId, schedd: str) -> str:
        """Where a service is reached, `NAME:PORT`."""
        return f"{self._domain.name(service, job, schedd)}:{self._port}"

    async def listen(
        self,
        rt: Runtime,
        access: ServiceAccess,
        persons: Persons,
        passage: Passage,
        uses: Uses,
        limits: RequestLimits,
    ) -> None:
        """As long as the service lasts; raises SettingsError: the port is taken."""
        settings = self._settings
        listener = ServiceListener(
            self._context,
            self.certificates,
            access,
            persons,
            passage,
            uses,
            limits,
            most=settings.service_connections,
            proxies=frozenset(settings.proxies),
        )
        await rt.enter(listener.listening(settings.http_host, self._port))

    def _issue(self) -> None:
        made = self.certificates.issue(f"*.{self._settings.services_domain}")
        write_private(self._shown, made.certificate + made.key)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(_RENEWED_S)
            try:
                self._issue()
                Listener(certificate=str(self._shown), key=str(self._shown)).renew(self._context)
            except OSError as error:
                _log.error("the certificate of services stays as it was: %s", error)


def _require_name(certificate: str, domain: str) -> None:
    """Raises SettingsError: a certificate is not for all names below a domain."""
    try:
        names = facts(load(Path(certificate).read_bytes(), certificate)).names
    except OSError as error:
        raise SettingsError(f"{certificate} cannot be read: {error.strerror}") from error
    except CertificateError as error:
        raise SettingsError(str(error)) from error
    if f"*.{domain}" not in names:
        raise SettingsError(
            f"services_domain: http_certificate is for {', '.join(names) or 'no name'} and not for *.{domain}, so no program would go on: have "
            f"one issued with that name too"
        )
