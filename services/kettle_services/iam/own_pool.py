"""What an iam finds out about the pool that it is in."""

import re
from functools import partial
from pathlib import Path
from typing import Final

from kettle.accounts.lookup import own_name
from kettle.auth.trust.keys import KeyPair
from kettle.bus.credentials import Credential
from kettle_services.iam.admissions import Pool
from kettle_services.iam.bus_credentials import NoSigningKey, ScopedSigningKey
from kettle_services.iam.pins import certificate, pin_of
from kettle_services.iam.pool_master import master_name
from kettle_services.iam.ports import BusCredentials, TokenKeys
from kettle_services.iam.settings import IamSettings
from kettle_wire.subjects import untoken

_PASSWORD: Final = re.compile(r"(?<=://)[^/@,]*@")
"""What of an address of the bus is for this service alone."""


def administrators(settings: IamSettings) -> frozenset[str]:
    """Users who may command it: the account that could stop this process anyway, and the configured ones."""
    return frozenset({*settings.administrators, own_name()})


def bus_credentials(settings: IamSettings) -> BusCredentials:
    """
    What mints the credentials of machines: the key that the settings name, or that of the pool's own server.
    """
    if settings.workers_signing_key:
        key = Path(settings.workers_signing_key)
        return ScopedSigningKey(settings.workers_account, key, partial(own_names, settings))
    trust = settings.home_path / "credentials" / "trust"
    own = trust / "sign-worker.nk"
    if not own.exists():
        return NoSigningKey()
    account = KeyPair((trust / "account-WORKERS.nk").read_text(encoding="ascii")).public
    return ScopedSigningKey(account, own, partial(own_names, settings), trust)


def own_names(settings: IamSettings) -> set[str]:
    """
    The names of the pool's own hosts: of their startds, and of the master, which a machine of the same name could
    play.
    """
    files = (settings.home_path / "credentials").glob("startd*.creds")
    startds = {untoken(Credential.read(path).name) for path in files}
    return startds | {master_name(settings), "schedd"}


def own_server(settings: IamSettings) -> bool:
    """Whether the bus is the pool's own server, whose members a master admits."""
    return (settings.home_path / "credentials" / "trust").exists()


def pool_of(settings: IamSettings, keys: TokenKeys, port: int) -> Pool:
    """What machines and people are told of it; `port`: that of iam."""
    authority = certificate(settings.ca_certificate)
    scheme = "https" if settings.certificate else "http"
    return Pool(
        name=settings.pool,
        url=settings.url.rstrip("/") or f"{scheme}://{settings.http_host}:{port}",
        bus_url=settings.bus_url or _PASSWORD.sub("", settings.nats_url),
        pin=pin_of(authority) if authority else keys.pin,
        bus_ca=certificate(settings.nats_ca),
    )
