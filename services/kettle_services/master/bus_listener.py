"""Where the master's own NATS server is reached, and what it shows there: checked before it is used."""

import logging
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from kettle.embedded.nats_listener import LOOPBACK, NatsListener
from kettle.runtime import SettingsError
from kettle_services.master.domain.bus_address import name_of, place_of
from kettle_services.master.settings import MasterSettings

_log: Final = logging.getLogger(__name__)


def of(settings: MasterSettings) -> tuple[NatsListener | None, int]:
    """
    The listener, None without a certificate, and its port, 0 if it may be any.

    Raises:
        SettingsError: no client would accept what it shows.
    """
    if not settings.nats_certificate:
        return None, 0
    host, port = place_of(settings.nats_listen) if settings.nats_listen else (LOOPBACK, 0)
    name = name_of(host, socket.gethostname())
    from kettle.pki.certificates import remark  # only where connections are encrypted
    from kettle.pki.contexts import Listener
    from kettle.pki.explanations import UntrustedError
    from kettle.pki.rehearsal import rehearse

    shown = Listener(certificate=settings.nats_certificate, key=settings.nats_key)
    try:
        rehearse(shown, name=name, ca=settings.nats_ca)
    except UntrustedError as error:
        raise SettingsError(f"nats_certificate of [master]: {error}") from error
    if said := remark(Path(shown.certificate), datetime.now(UTC)):
        _log.warning("%s", said)
    listener = NatsListener(
        certificate=Path(shown.certificate),
        key=Path(shown.key),
        ca=Path(settings.nats_ca),
        host=host,
        name=name,
    )
    return listener, port
