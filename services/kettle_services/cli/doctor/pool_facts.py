"""
What `kettle doctor` reads of the pool: its state, ads, tables, certificates, listeners and configuration.
"""

import hashlib
import socket
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from kettle import VERSION
from kettle.pki.certificates import CertificateError, facts, load
from kettle.pool import MasterState
from kettle.projections import Lag
from kettle.runtime import SettingsError
from kettle.runtime.settings import config_path
from kettle_services.cli.configuration.check import check
from kettle_services.cli.configuration.comparison import changes
from kettle_services.cli.configuration.outcome import environ_of
from kettle_services.cli.configuration.services import DaemonReading, of_host
from kettle_services.cli.doctor.pool_checks import (
    CertificateFacts,
    DaemonFacts,
    HostAd,
    LagFacts,
    ListenerFacts,
    PoolFacts,
)
from kettle_services.cli.errors import CommandError
from kettle_wire.ads import Ad

_CERTIFICATES: Final = (
    "nats_certificate",
    "http_certificate",
    "certificate",
    "nats_ca",
    "http_client_ca",
    "store_ca",
)
_PORTS: Final = ("http_port", "nats_port", "health_port", "port")
_HOSTS: Final = {"http_port": "http_host", "nats_port": "nats_host"}
_WITHIN_S: Final = 1.0


def pool_facts(
    home: Path, state: MasterState | None, masters: Sequence[Ad], lags: Sequence[Lag]
) -> PoolFacts:
    """All of it, as far as it is known."""
    problems = check(environ_of(home))
    try:
        readings = of_host(environ_of(home), None)
    except SettingsError:
        readings = []
    return PoolFacts(
        home=str(home),
        runs=state is not None,
        version=VERSION,
        master_version="" if state is None else state.version,
        daemons=[
            DaemonFacts(
                name=each.name,
                status=each.status,
                starts=each.starts,
                hangs=each.hangs,
                last_exit=each.last_exit,
            )
            for each in (() if state is None else state.daemons)
        ],
        hosts=[_host(ad) for ad in masters],
        lags=[
            LagFacts(
                projection=lag.projection,
                shard=lag.shard,
                frames=lag.frames,
                seconds=lag.seconds,
                error=lag.error or "",
            )
            for lag in lags
        ],
        certificates=[_certificate(path) for path in sorted({*_named(readings), *home.glob("pki/*.pem")})],
        listeners=list(_listeners(readings, runs=state is not None)),
        configuration=[(str(each), each.warning) for each in problems],
        not_used_yet=_not_used(home) if state is not None else [],
        fingerprints=_fingerprints(home),
    )


def _host(ad: Ad) -> HostAd:
    def number(name: str) -> float:
        value = ad.get(name)
        return float(value) if isinstance(value, int | float) else 0.0

    return HostAd(
        name=str(ad.get("Name", "?")),
        version=str(ad.get("KettleVersion", "")),
        installed=str(ad.get("NewVersion", "")),
        said=number("MyCurrentTime"),
        heard=number("LastHeardFrom"),
    )


def _settings(readings: Sequence[DaemonReading]) -> Iterator[tuple[str, dict[str, object]]]:
    """What each daemon is told that is not the default."""
    for each in readings:
        yield each.daemon, {name: value.value for name, value in each.reading.given.items()}


def _named(readings: Sequence[DaemonReading]) -> Iterator[Path]:
    for _, said in _settings(readings):
        for name in _CERTIFICATES:
            if isinstance(path := said.get(name), str) and path.startswith("/"):
                yield Path(path)


def _certificate(path: Path) -> CertificateFacts:
    try:
        data = path.read_bytes()
        if b"BEGIN CERTIFICATE" not in data:
            return CertificateFacts(path=str(path), error="it holds no certificate in PEM form")
        return CertificateFacts(path=str(path), ends=facts(load(data, str(path))).ends.timestamp())
    except OSError as error:
        return CertificateFacts(path=str(path), error=error.strerror or str(error))
    except CertificateError as error:
        return CertificateFacts(path=str(path), error=str(error))


def _listeners(readings: Sequence[DaemonReading], *, runs: bool) -> Iterator[ListenerFacts]:
    for daemon, said in _settings(readings):
        for name in _PORTS:
            port = said.get(name)
            if not isinstance(port, int) or not port:
                continue
            host = said.get(_HOSTS.get(name, ""))
            address = host if isinstance(host, str) and host not in {"", "0.0.0.0", "::"} else "127.0.0.1"  # noqa: S104 - compared
            yield ListenerFacts(
                what=f"{name} of {daemon}",
                address=f"{address}:{port}",
                listens=_listens(address, port),
                wanted=runs,
            )


def _listens(host: str, port: int) -> bool:
    try:
        with closing(socket.create_connection((host, port), timeout=_WITHIN_S)):
            return True
    except OSError:
        return False


def _not_used(home: Path) -> list[str]:
    try:
        return [f"{each.setting} of {each.daemon}" for each in changes(home)]
    except CommandError:
        return []  # the check of the configuration says what is wrong


def _fingerprints(home: Path) -> dict[str, str]:
    path = config_path(environ_of(home))
    if path is None or not path.exists():
        return {}
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest()[:16]}
