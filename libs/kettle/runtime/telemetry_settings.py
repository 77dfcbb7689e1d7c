"""
The table `[telemetry]` of the settings: whether and where metrics are served to Prometheus.

    [telemetry]
    metrics = true
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec

TABLE: Final = "telemetry"
LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})
"""Addresses that only this machine reaches."""


class TelemetrySettings(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """The table `[telemetry]`."""

    metrics: bool = False
    """
    Have every service serve `/metrics`, `/healthz` and `/readyz` on its `health_port`, or else on a free port that
    Prometheus finds in `targets`.
    """
    host: str = "127.0.0.1"
    """Address of that port. Another than this machine's own needs `key` and `certificate`."""
    targets: str = ""
    """
    Directory in which each service writes where it serves metrics, for `file_sd_configs` of Prometheus; empty: `metrics`
    in `home`.
    """
    key: str = ""
    """Path of a file with the key that Prometheus shows (`authorization: credentials_file`); empty: it shows none.

    Once it is there, the port of a gateway for people asks for it, too.
    """
    certificate: str = ""
    """Path of a certificate (PEM); with it metrics are served over HTTPS only."""
    certificate_key: str = ""
    """Path of the key of this certificate."""
    owners: bool = False
    """Whether names of submitters may be in metrics."""

    def complaints(self) -> Iterator[tuple[tuple[str, ...], str]]:
        """What cannot be used, by the keys that lead to it."""
        if bool(self.certificate) != bool(self.certificate_key):
            yield (
                ("certificate",),
                "a certificate and its key are given together (certificate, certificate_key)",
            )
        if self.host not in LOOPBACK and not (self.key and self.certificate):
            yield (
                ("host",),
                f"on '{self.host}' others can ask for metrics: give key, certificate and certificate_key, or leave host at 127.0.0.1",
            )

    def directory(self, home: Path) -> Path:
        """Where files for Prometheus are."""
        return Path(self.targets).expanduser() if self.targets else home / "metrics"
