"""
The settings of a pool in containers: one file for all services, which names where secrets are and holds none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from kettle.pool.personal_settings import Value
from kettle.pool.settings_file import merged

SECRETS: Final = "/run/secrets"
"""Where a container finds what it has to show."""
BUS_URL: Final = "tls://nats:4222"
GATEWAY_PORT: Final = 8443
IAM_PORT: Final = 9643
_HEAD: Final = """\
# The settings of all services of a pool in containers.  kettle site containers has begun this file; it is yours, and what is there
# is never changed by it.  Secrets are in files of their own, which each container is given its own of.
"""
_EVERYWHERE: Final = "0.0.0.0"  # noqa: S104 - within a container
_THEIRS: Final = frozenset({"administrators", "url", "public_url", "bus_url", "nats_replicas"})
"""What may say something else than a new pool has."""


def settings_text(
    path: Path,
    *,
    pool: str,
    administrator: str,
    services: Sequence[str],
    with_database: Sequence[str],
    iam_url: str,
    workers_account: str,
    replicas: int,
) -> str:
    """
    The text of the file at `path`, which need not be there, with what it lacks.

    Raises:
        SettingsFileError: it says something else.
    """
    was = path.read_text(encoding="utf-8") if path.exists() else _HEAD
    tables: dict[str, dict[str, Value]] = {
        "kettle": {
            "pool": pool,
            "nats_url": BUS_URL,
            "nats_ca": f"{SECRETS}/ca.pem",
            "nats_replicas": replicas,
            "log_format": "json",
        }
    }
    for service in services:
        tables[service] = {"nats_credentials": f"{SECRETS}/{service}.creds"}
        if service in with_database:
            tables[service]["database_url"] = f"file:{SECRETS}/{service}.database"
    for service, more in _own(administrator, iam_url, workers_account).items():
        tables[service] |= more
    text, _ = merged(path, was, tables, {}, theirs=_THEIRS)
    return text


def _own(administrator: str, iam_url: str, workers_account: str) -> Mapping[str, Mapping[str, Value]]:
    certificate: Mapping[str, Value] = {
        "certificate": f"{SECRETS}/server.pem",
        "certificate_key": f"{SECRETS}/server.key",
    }
    administrators: Mapping[str, Value] = {"administrators": [administrator]}
    return {
        "schedd": {"key_file": f"{SECRETS}/schedd.claims", "seal_file": f"{SECRETS}/schedd.seal"},
        "negotiator": administrators,
        "accounting": {
            "seal_directory": SECRETS,
            "archiver_url": f"file:{SECRETS}/archiver.database",
        },
        "gateway": {
            "rest": True,
            "http_host": _EVERYWHERE,
            "http_port": GATEWAY_PORT,
            "services_port": GATEWAY_PORT + 1,
            "http_certificate": f"{SECRETS}/server.pem",
            "http_key": f"{SECRETS}/server.key",
            "seal_directory": SECRETS,
        },
        "iam": {
            **administrators,
            **certificate,
            "url": iam_url,
            "http_host": _EVERYWHERE,
            "http_port": IAM_PORT,
            "ca_certificate": f"{SECRETS}/ca.pem",
            "bus_url": BUS_URL,
            "people_keys": f"{SECRETS}/people-keys.json",
            "workers_account": workers_account,
            "workers_signing_key": f"{SECRETS}/sign-worker.nk",
        },
    }
