"""What can be set about an iam."""

from pathlib import Path
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec

from kettle.runtime import OwnerSettings
from kettle.runtime.setting_types import Pause, Seconds

_Rate = Annotated[float, msgspec.Meta(gt=0, le=1e6)]
_Burst = Annotated[float, msgspec.Meta(ge=1, le=1e6)]

_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "::1"})


class OAuthService(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A service that gives access tokens for refresh tokens."""

    token_url: str
    """Where it does so."""
    client_id: str
    """What it knows this pool as."""
    client_secret_file: str = ""
    """Path of the secret that goes with it; only iam reads it."""
    sign_in: str = ""
    """Where people get a refresh token, in words for them."""


class IamSettings(OwnerSettings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_IAM_<FIELD>` or the table `[iam]`."""

    name: str = "iam"
    http_host: str = "127.0.0.1"
    """Address on which it is served over HTTP."""
    http_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Port of it; 0: one that is free, and then stays the same."""
    url: str = ""
    """How it is reached from elsewhere, which is also its name as an issuer of tokens; empty: `http://HOST:PORT`."""
    certificate: str = ""
    """Path of the server certificate, in PEM, with which it is served over HTTPS; empty: HTTP."""
    certificate_key: str = ""
    """Path of the key that belongs to it."""
    ca_certificate: str = ""
    """
    Path of the certificate, in PEM, of the authority by which the certificate at `url` can be checked: join tokens have its
    SHA-256. Empty: they have the one of iam's own key.
    """
    administrators: tuple[str, ...] = ()
    """Users who may make join tokens, ban, and read the audit, besides the account that this service runs as."""
    audiences: tuple[str, ...] = ()
    """For whom people may have tokens, besides this pool."""
    access_token_lifetime: Seconds = 1200.0
    """Seconds, the longest life of an access token."""
    job_token_scopes: tuple[str, ...] = ("condor:/READ", "condor:/WRITE")
    """
    What tokens of jobs (`use_oauth_services = kettle` or `scitokens`) may say at most, and say where the job names nothing;
    `{owner}` is the job's owner, as in `storage.read:/home/{owner}`.
    """
    job_token_audiences: tuple[str, ...] = ()
    """For whom tokens of jobs may be; the first is that of a job that names nobody. Empty: this pool."""
    job_token_lifetime: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 1200
    """Seconds, the life of a job's token; it is renewed when a third of it is left."""
    oauth_services: dict[str, OAuthService] = {}
    """With whom iam exchanges the refresh tokens that people store for their jobs (`condor_store_cred add-oauth`)."""
    session_lifetime: Seconds = 30 * 86_400.0
    """Seconds without use after which a refresh token is over."""
    session_end: Seconds = 365 * 86_400.0
    """Seconds after which it is over, however much it is used."""
    key_lifetime: Seconds = 30 * 86_400.0
    """Seconds for which a key signs access tokens."""
    key_overlap: Seconds = 86_400.0
    """Seconds for which a key is published before it signs, and after."""
    housekeeping: Seconds = 60.0
    """Seconds between removals of what is over."""
    join_tokens_kept: Pause = 86_400.0
    """Seconds after its end for which a join token is known, so that its use is reported for what it is."""
    workers_account: str = ""
    """The public key of the account of the bus in which machines are that join by a token; empty: that of the pool's own
    server."""
    workers_signing_key: str = ""
    """Path of the seed of that account's scoped signing key for machines."""
    bus_master: str = ""
    """The master that runs the pool's NATS server, which is told whose credential is withdrawn; empty: that of this host."""
    people_keys: str = ""
    """Path of the keys that sign for people who come with a token (`people-keys.json`, which the master writes beside the
    credentials); empty: those of the pool's own server, if it has any."""
    collector: str = "collector"
    """The collector that is asked whether a host of the pool has a name under which a machine wants to join."""
    worker_lifetime: Pause = 0.0
    """Seconds for which the credential of a machine is valid; 0: until it leaves."""
    own_worker_lifetime: Seconds = 7 * 86_400.0
    """Seconds for which the credential of a machine is valid that a person has let in; it is renewed as long as the person is not
    banned and the token that was shown is neither withdrawn nor over, and its session is not either."""
    machines_per_person: Annotated[int, msgspec.Meta(ge=0, le=10_000)] = 10
    """How many machines a person may have join by himself that run his own jobs only; 0: none."""
    bus_url: str = ""
    """Where machines that join reach the bus; empty: as this service does."""
    issuers: dict[str, tuple[str, ...]] = {}
    """Whose tokens are accepted, each with the audiences that they must have; recorded when it changes."""
    issuers_within: tuple[str, ...] = ()
    """Names of hosts of issuers that may have addresses that are not public."""
    issuers_ca: str = ""
    """Path of the certificate, in PEM, of an authority of issuers besides those that this machine trusts."""
    token_requests: bool = True
    """Whether programs of HTCondor may ask for tokens, which somebody has to approve (SEC_ENABLE_TOKEN_REQUEST)."""
    token_request_wait: Seconds = 3600.0
    """Seconds for which such a request waits for its approval."""
    idtoken_lifetime: Pause = 365 * 86_400.0
    """Seconds, the longest life of the tokens of programs of HTCondor (SEC_ISSUED_TOKEN_EXPIRATION); 0: they need not end."""
    requests_per_second: _Rate = 100.0
    """From one address, over a longer time."""
    request_burst: _Burst = 300.0
    """At once."""
    failures_per_second: _Rate = 0.2
    """Wrong credentials from one address or for one identity; more are answered with 429. Right ones always pass."""
    failure_burst: _Burst = 20.0
    """At once."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies whose X-Forwarded-For says who asks."""

    def __post_init__(self) -> None:
        if bool(self.workers_account) != bool(self.workers_signing_key):
            raise ValueError("workers_signing_key: it and workers_account belong together, give both or none")
        if bool(self.certificate) != bool(self.certificate_key):
            raise ValueError("certificate: it and certificate_key belong together, give both or none")
        for name, service in self.oauth_services.items():
            if not is_safe(service.token_url):
                raise ValueError(
                    f"oauth_services: the token_url of {name}, '{service.token_url}', would have secrets sent where others can"
                    " read them: it has to begin with https://"
                )
        if self.url and not is_safe(self.url):
            raise ValueError(
                f"url: '{self.url}' would have secrets sent where others can read them: it has to begin with https://"
            )
        if self.http_host not in _LOOPBACK and not self.certificate and not self.url:
            raise ValueError(
                f"http_host: on '{self.http_host}' secrets would be sent where others can read them: give certificate and "
                "certificate_key, or the url of a proxy that has them"
            )

    @property
    def directory(self) -> Path:
        """Where it keeps its keys."""
        return self.home_path / "iam"


def is_safe(url: str) -> bool:
    """Whether what is sent there stays between us and who answers."""
    place = urlsplit(url)
    return place.scheme == "https" or (place.scheme == "http" and place.hostname in _LOOPBACK)
