"""Which files each container of a pool is given, and the same for Kubernetes as generators of kustomize."""

from collections.abc import Mapping, Sequence
from typing import Final

GIVEN: Final[Mapping[str, Sequence[str]]] = {
    "accounting": ("ca.pem", "accounting.creds", "accounting.database", "archiver.database", "schedd.seal"),
    "collector": ("ca.pem", "collector.creds", "collector.database"),
    "dagman": ("ca.pem", "dagman.creds", "dagman.database"),
    "gateway": (
        "ca.pem", "gateway.creds", "gateway.database", "schedd.seal", "server.pem", "server.key", "sentinel.creds",
    ),
    "iam": (
        "ca.pem", "iam.creds", "iam.database", "people-keys.json", "sentinel.creds", "sign-worker.nk", "server.pem", "server.key",
    ),
    "negotiator": ("ca.pem", "negotiator.creds", "negotiator.database"),
    "provisioner": ("ca.pem", "provisioner.creds"),
    "scaler": ("ca.pem", "scaler.creds", "scaler.database"),
    "schedd": ("ca.pem", "schedd.creds", "schedd.database", "schedd.claims", "schedd.seal"),
    "sessions": ("ca.pem", "sessions.creds", "sessions.database"),
    "shadow": ("ca.pem", "shadow.creds"),
    "ce": ("ca.pem", "ce.creds", "ce.database"),
    "administrator": ("ca.pem", "administrator.creds"),
    "postgres": ("postgres.password",),
}  # fmt: skip
"""By container: what is in its /run/secrets."""

BUS: Final = ("nats.conf", "tls.pem", "tls.key", "ca.pem")
"""What the NATS server is given."""


def kustomization(passwords: Sequence[str]) -> str:
    """
    The text of a `kustomization.yaml` beside the files: a Secret for each container, whose name changes with what is in it, so that
    a pod that is given another one is started again.  `passwords`: the files with which the database is prepared.
    """
    given = {**GIVEN, "database": ("owner.database", *passwords)}
    secrets = [
        _generator(f"kettle-{name}", [f"secrets/{each}" for each in given[name]]) for name in sorted(given)
    ]
    secrets.append(_generator("kettle-nats", [f"bus/{each}" for each in BUS]))
    settings = _generator("kettle-settings", ["kettle.toml", "pool.json"])
    return (
        "# Made by kettle site containers: what infra/kubernetes is given.\n"
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n"
        f"configMapGenerator:\n{settings}secretGenerator:\n{''.join(secrets)}"
    )


def _generator(name: str, files: Sequence[str]) -> str:
    return f"  - name: {name}\n    files:\n" + "".join(f"      - {each}\n" for each in files)
