"""
What a pool in containers needs that is not in an image: whom its NATS server believes, what each service shows, and passwords.

    DIRECTORY/            for its owner alone
        kettle.toml       the settings of all services; no secret
        pool.json         how the pool's administrator finds it, within a container
        bus/              nats.conf with the certificate and its key: for the NATS server
        secrets/          one file for each thing that somebody has to show; each service is given its own
        trust/            the keys of the operator: no container gets them
        kustomization.yaml    the same as Secrets for infra/kubernetes
        pki/              the authority, whose key no container gets

Nothing is made twice: said again, keys, passwords and certificates stay, and what is said of keys is written again.
There is no master: an engine for containers, or Kubernetes, starts, watches and restarts the services.
"""

import os
import secrets
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import Final

import msgspec

from kettle.auth.private_files import key_file, private_directory, write_private
from kettle.auth.trust import files
from kettle.auth.trust.accounts import Account
from kettle.auth.trust.keys import KeyPair, TrustError
from kettle.auth.trust.pool import Kind, PoolTrust
from kettle.auth.trust.server import PROBE
from kettle.embedded.nats_config import Limits, render
from kettle.embedded.nats_listener import NatsListener
from kettle.pki.authority_files import AuthorityFiles
from kettle.pki.certificates import CertificateError, HolderKind
from kettle.pool.container_secrets import kustomization
from kettle.pool.container_settings import BUS_URL, SECRETS, settings_text
from kettle.pool.settings_file import SettingsFileError
from kettle_wire.subjects import Subjects

SERVICES: Final = (
    "accounting", "ce", "collector", "dagman", "gateway", "iam", "negotiator", "provisioner", "scaler", "schedd", "sessions", "shadow",
)  # fmt: skip
"""Those that have a credential; each container is given its own."""
DATABASE_ROLES: Final = (
    "accounting", "archiver", "ce", "collector", "dagman", "gateway", "iam", "negotiator", "scaler", "schedd", "sessions",
)  # fmt: skip
"""Those that have a role of the database."""
BUS: Final = "nats"
"""The name by which containers reach the NATS server."""
_PASSWORD_BYTES: Final = 24
_ROUTE_PORT: Final = 6222
_STATUS: Final = "127.0.0.1:8222"
"""It is asked within its container: who is connected, and the names of consumers, are told to everybody there."""


class ContainerFilesError(Exception):
    """The files cannot be made; the message is a sentence."""


class ContainerPool(msgspec.Struct, frozen=True, kw_only=True):
    """What the administrator says."""

    pool: str
    administrator: str = "kettle"
    """Who runs the pool from within a container: the account's name in the image."""
    database: str = "postgres:5432/kettle"
    """Where PostgreSQL is, as `HOST:PORT/DATABASE`; options of a URL may follow."""
    names: Sequence[str] = ()
    """Further names for the certificate, as `bus.example.org`, by which NATS, iam and the gateway are reached."""
    iam_url: str = "https://iam:9643"
    """Where machines reach iam."""
    bus_servers: int = 1
    """How many NATS servers form a cluster."""
    account: int = -1
    """The number of the account to which the files are given, if root makes them; -1: to none."""


def make(wanted: ContainerPool, directory: Path, *, now: datetime) -> list[Path]:
    """
    Write what is missing, and what is said of keys again; the files that containers are given.

    Raises:
        ContainerFilesError: something cannot be written, or what is there cannot be used.
    """
    try:
        return _Files(wanted, private_directory(directory.absolute())).make(now)
    except (TrustError, CertificateError, SettingsFileError, ValueError) as error:
        raise ContainerFilesError(str(error)) from error
    except OSError as error:
        raise ContainerFilesError(
            f"{error.filename or directory} cannot be used: {error.strerror or error}"
        ) from error


class _Files:
    def __init__(self, wanted: ContainerPool, directory: Path) -> None:
        self._wanted = wanted
        self._directory = directory
        self._secrets = private_directory(directory / "secrets")
        self._trust = PoolTrust(directory / "trust", Subjects(wanted.pool), callout=True)
        self._written: list[Path] = []

    def make(self, now: datetime) -> list[Path]:
        ca = self._certificates(now)
        self._credentials()
        self._databases()
        self._keys()
        self._bus(ca)
        self._write(self._directory / "kettle.toml", self._settings())
        self._write(self._directory / "pool.json", _pool_file(self._wanted))
        passwords = [f"{role}.password" for role in DATABASE_ROLES]
        self._write(self._directory / "kustomization.yaml", kustomization(passwords))
        if self._wanted.account >= 0 and os.geteuid() == 0:
            for path in self._written:
                for each in (path.parent, path):
                    os.chown(each, self._wanted.account, self._wanted.account)
        return self._written

    def _write(self, path: Path, content: str) -> None:
        self._written.append(write_private(path, content))

    def _secret(self, name: str, content: str) -> None:
        self._write(self._secrets / name, content)

    def _certificates(self, now: datetime) -> Path:
        authority = AuthorityFiles(self._directory / "pki")
        ca = authority.directory / "ca.pem"
        if not ca.exists():
            authority.make(self._wanted.pool, now=now)
        also = [_plain(each) for each in self._wanted.names]
        names = [BUS, "iam", "gateway", "localhost", "127.0.0.1", *also]
        if self._wanted.bus_servers > 1:
            names += [f"{BUS}-{number}.{BUS}" for number in range(self._wanted.bus_servers)]
        certificate = authority.directory / f"{BUS}.pem"
        if not certificate.exists():
            kind: HolderKind = "peer" if self._wanted.bus_servers > 1 else "server"
            authority.issue(list(dict.fromkeys(names)), kind, now=now)
        elif missing := sorted({*names} - {*authority.kept(BUS).facts.names}):
            raise CertificateError(
                f"{certificate} is not for {', '.join(missing)}: remove it and say this again, and one with all names is made"
            )
        self._of_metrics(authority, now)
        self._secret("ca.pem", ca.read_text("ascii"))
        self._secret("server.pem", certificate.read_text("ascii"))
        self._secret("server.key", certificate.with_suffix(".key").read_text("ascii"))
        return ca

    def _of_metrics(self, authority: AuthorityFiles, now: datetime) -> None:
        """
        All services show one certificate to Prometheus, which proves nothing to anybody else: none listens under their names.
        """
        certificate = authority.directory / f"{SERVICES[0]}.pem"
        if not certificate.exists():
            authority.issue(SERVICES, "server", now=now)
        self._secret("metrics.pem", certificate.read_text("ascii"))
        self._secret("metrics.key", certificate.with_suffix(".key").read_text("ascii"))
        self._password("metrics.password")

    def _credentials(self) -> None:
        for role in (*SERVICES, PROBE):
            state = partial(self._trust.service, role)
            self._written.append(files.write(self._secrets / f"{role}.creds", state))
        person = partial(self._trust.member, Kind.ADMINISTRATOR, self._wanted.administrator)
        self._written.append(files.write(self._secrets / "administrator.creds", person))
        keys = self._trust.callout_keys()
        self._secret("people-keys.json", keys.text())
        self._secret("sentinel.creds", keys.sentinel)

    def _databases(self) -> None:
        """The addresses with passwords, which are made once and kept in them."""
        place, _, database = self._wanted.database.partition("/")
        name = database.partition("?")[0]
        owner = self._password("postgres.password")
        self._secret("owner.database", f"postgresql://{name}:{owner}@{place}/{database}\n")
        for role in DATABASE_ROLES:
            password = self._password(f"{role}.password")
            self._secret(f"{role}.database", f"postgresql://{name}_{role}:{password}@{place}/{database}\n")

    def _password(self, name: str) -> str:
        path = self._secrets / name
        if not path.exists():
            write_private(path, secrets.token_hex(_PASSWORD_BYTES))
        self._written.append(path)
        return path.read_text("ascii").strip()

    def _keys(self) -> None:
        for name in ("schedd.claims", "schedd.seal"):
            key_file(self._secrets / name)
            self._written.append(self._secrets / name)
        self._trust.statements()  # makes the keys that sign
        self._secret("sign-worker.nk", (self._directory / "trust" / "sign-worker.nk").read_text("ascii"))

    def _bus(self, ca: Path) -> None:
        bus = private_directory(self._directory / "bus")
        listener = NatsListener(
            certificate=self._secrets / "server.pem",
            key=self._secrets / "server.key",
            ca=ca,
            host="0.0.0.0",  # noqa: S104 - of its container
            name=BUS,
        )
        self._written += listener.copy_to(bus)
        self._write(bus / "ca.pem", ca.read_text("ascii"))
        name = f"kettle-{self._wanted.pool}"
        text = render(
            name=name,
            port=4222,
            store="/data",
            pid_file="/tmp/nats.pid",  # noqa: S108 - of its container
            trust=self._trust.statements(),
            limits=Limits(),
            listener=listener,
        )
        if self._wanted.bus_servers > 1:  # one file for all: each server has the name of its host
            text = text.replace(f'server_name: "{name}"', "server_name: $HOSTNAME", 1) + self._cluster()
        self._write(bus / "nats.conf", f'http: "{_STATUS}"\n{text}')

    def _cluster(self) -> str:
        secret = self._password("route.password")
        hosts = [f"{BUS}-{number}.{BUS}:{_ROUTE_PORT}" for number in range(self._wanted.bus_servers)]
        routes = ", ".join(f'"nats://route:{secret}@{host}"' for host in hosts)
        return f"""\
cluster {{
  name: "{self._wanted.pool}"
  listen: "0.0.0.0:{_ROUTE_PORT}"
  authorization {{ user: "route", password: "{secret}" }}
  tls {{ cert_file: "tls.pem", key_file: "tls.key", ca_file: "ca.pem", verify: true }}
  routes: [{routes}]
}}
"""

    def _settings(self) -> str:
        key = self._directory / "trust" / f"account-{Account.WORKERS}.nk"
        return settings_text(
            self._directory / "kettle.toml",
            pool=self._wanted.pool,
            administrator=self._wanted.administrator,
            services=SERVICES,
            with_database=DATABASE_ROLES,
            iam_url=self._wanted.iam_url,
            workers_account=KeyPair(key.read_text("ascii")).public,
            replicas=min(self._wanted.bus_servers, 3),
        )


def _plain(name: str) -> str:
    """An address in the form in which a certificate tells it."""
    try:
        return str(ip_address(name))
    except ValueError:
        return name


def _pool_file(wanted: ContainerPool) -> str:
    """As `kettle.client.connections.pool_file` reads it; this library knows no client."""
    found = {
        "pool": wanted.pool,
        "nats_url": BUS_URL,
        "credentials": f"{SECRETS}/administrator.creds",
        "ca": f"{SECRETS}/ca.pem",
        "user": wanted.administrator,
    }
    return msgspec.json.format(msgspec.json.encode(found)).decode() + "\n"
