"""What can be set about a gateway."""

from typing import Annotated

import msgspec

from kettle.runtime import Settings
from kettle.runtime.setting_types import Seconds
from kettle.runtime.telemetry_settings import LOOPBACK
from kettle_services.gateway.domain.service_origins import why_no_services_url

Count = Annotated[int, msgspec.Meta(ge=1)]
_DOMAIN = r"^([a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*)?$"


class LoginIssuer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    An issuer at which people sign in to the pages (OpenID Connect), and as which client of it the gateway comes.
    """

    issuer: str
    """Exactly as it calls itself."""
    client: str
    """The id under which the gateway is registered there, with `PUBLIC_URL/login/return` as the address to come back to."""
    secret_file: str = ""
    """Path of a file with the client's secret; without one it is a public client, which PKCE makes safe."""
    name: str = ""
    """What people call it; the host of the issuer if nothing is said."""
    scopes: tuple[str, ...] = ("openid",)
    """What is asked for; `offline_access` has many issuers renew tokens."""
    resource: str = ""
    """For whom the access token is to be (RFC 8707): the address of the pool's iam."""
    audience: str = ""
    """For whom the access token is to be, for issuers that call this its audience."""


class GatewaySettings(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`KETTLE_GATEWAY_<FIELD>` or the table `[gateway]`."""

    monitor_messages: Count = 1_000_000
    """
    The most events that the stream MONITOR keeps; the oldest are deleted. Applies when the stream is created.
    """
    monitor_bytes: Annotated[int, msgspec.Meta(ge=1 << 20)] = 1 << 30
    """Its most bytes."""
    monitor_age: Seconds = 7 * 86400.0
    """Seconds that it keeps an event."""
    max_event_bytes: Annotated[int, msgspec.Meta(ge=1024)] = 256 * 1024
    """The most bytes of an event's JSON; a larger one is published without `data`."""
    discovery_interval: Seconds = 2.0
    """Seconds between checks for new shards; up to five times as long while there are none."""
    owners_kept: Count = 100_000
    """Clusters whose owner is kept in memory; for others the schedd is asked."""
    http_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """Port on which schemas and counts are served over HTTP; 0 means none."""
    http_host: str = "127.0.0.1"
    """Address on which they are served. They are not secret, but are served to every client."""
    http_certificate: str = ""
    """
    Path of a certificate (PEM); with it they are served over HTTPS only. A new one in the same file is used from the next
    `kettle reconfig` on, without loss of a connection.
    """
    http_key: str = ""
    """Path of the key of this certificate."""
    http_client_ca: str = ""
    """
    Path of the certificates of authorities (PEM); with it only clients whose certificate one of them has signed are served.
    """

    rest: bool = False
    """
    Serve pages for browsers at `/` and the REST interface under `/v2`, which needs `database_url`: on this machine, or over HTTPS, because people show
    tokens there. Without `http_port` it takes a free port, and keeps it in `gateway/port` in `home`.
    """
    prominence: bool = False
    """
    Serve PROMINENCE's REST interface, too, under `/prominence/v1`, for its own client; it needs `rest`.
    """
    prominence_largest: Count = 20 << 30
    """Bytes of one file that people or jobs send it."""
    prominence_quota: Count = 100 << 30
    """Bytes of all uploads of one person, of one group, and of what the jobs of one person have sent."""
    prominence_kept: Seconds = 30 * 86400.0
    """Seconds for which it keeps what jobs have sent."""
    prominence_bucket: Annotated[str, msgspec.Meta(pattern=r"^(s3://[^/\s?#]+(/[^\s?#]+)?)?$")] = ""
    """
    A bucket of S3, and how the names of objects begin in it, as `s3://bucket/kettle`: what people and jobs send is kept there, and
    fetched from there. Default: a directory of the gateway.
    """
    prominence_bucket_key: str = ""
    """A file that only the gateway can read, with the id of an access key and its secret, each on a line."""
    prominence_bucket_region: str = ""
    """The region of the bucket; default `us-east-1`."""
    prominence_bucket_endpoint: Annotated[str, msgspec.Meta(pattern=r"^(https?://[^\s?#]+)?$")] = ""
    """The address of its service where that is not Amazon's, as `https://s3.example.org`; machines and people must reach it."""
    seal_directory: str = ""
    """
    Directory of the keys (`*.seal`) with which it opens environments for owners who ask over HTTP; default
    `$KETTLE_HOME/credentials`.
    """
    rest_connections: Annotated[int, msgspec.Meta(ge=1, le=100)] = 4
    """Connections to the database, so as many questions are answered at once."""
    rest_time: Annotated[float, msgspec.Meta(ge=0.1, le=600)] = 5.0
    """Seconds that one question may take."""
    rest_streams: Count = 1_000
    """Streams of events that are open at once, and as many pages that are watched."""
    rest_streams_of_one: Count = 20
    """Of one person."""
    simulations_of_one: Annotated[int, msgspec.Meta(ge=0)] = 4
    """Simulations of one person that wait or run, each a job of the pool; 0: none are begun."""
    simulation_memory: Annotated[int, msgspec.Meta(ge=64)] = 2048
    """MiB that the job of a simulation asks for."""
    simulation_time: Annotated[float, msgspec.Meta(ge=1.0)] = 3600.0
    """Seconds that it may run."""
    simulation_kept: Annotated[float, msgspec.Meta(ge=0)] = 7 * 86400.0
    """Seconds for which its result is kept."""
    simulation_python: str = ""
    """Path of a Python on the machines that has this package; default: that of the gateway itself."""
    issuers: dict[str, tuple[str, ...]] = {}
    """Whose tokens are accepted over HTTP, each with the audiences that they must have."""
    issuer_hosts: tuple[str, ...] = ()
    """Hosts of these issuers that have no public address."""
    issuers_ca: str = ""
    """Path of the certificate, in PEM, of an authority of issuers besides those that this machine trusts."""
    login: tuple[LoginIssuer, ...] = ()
    """Where people sign in to the pages; their tokens are accepted as those of `issuers` are."""
    requests_per_second: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 50.0
    """Of one person over HTTP, over a longer time."""
    request_burst: Annotated[float, msgspec.Meta(ge=1, le=1e6)] = 200.0
    """At once."""
    all_requests_per_second: Annotated[float, msgspec.Meta(gt=0, le=1e6)] = 1000.0
    """Of everybody together over HTTP, over a longer time."""
    all_request_burst: Annotated[float, msgspec.Meta(ge=1, le=1e6)] = 4000.0
    """At once."""
    proxies: tuple[str, ...] = ()
    """Addresses of proxies whose X-Forwarded-For says who asks, and X-Forwarded-Proto and X-Forwarded-Host under which address."""
    public_url: str = ""
    """
    The address under which browsers reach it, with the path that a proxy in front has put before it: `https://pool.example.org`. Login
    links lead there, and issuers lead people back to it.
    """
    session_life: Seconds = 7 * 86400.0
    """How many seconds after signing in somebody who uses pages has to sign in again."""
    session_idle: Seconds = 8 * 3600.0
    """How many seconds without a request end the session."""
    prefix: Annotated[str, msgspec.Meta(pattern=r"^(/[A-Za-z0-9._~-]+)*$")] = ""
    """
    The path, as in `/kettle`, under which a proxy in front has the pages, and which it takes away; one of `proxies` may say it itself
    in X-Forwarded-Prefix.
    """
    prometheus_url: Annotated[str, msgspec.Meta(pattern=r"^(https?://[^\s?#]+)?$")] = ""
    """
    The address of the site's Prometheus, as in `http://127.0.0.1:9090`: the page of alerts shows what is firing there. Without one it
    shows what the gateway can tell itself.
    """
    documentation_url: Annotated[str, msgspec.Meta(pattern=r"^(https?://[^\s?#]+)?$")] = ""
    """The address under which this documentation is, for links of alerts to what to do: that of the directory `docs`."""
    services_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """
    Port, on `http_host`, at which browsers see pages of jobs, which are in no origin of the gateway's own pages; with `rest`. 0: a free one,
    which is kept in `gateway/services_port` in `home`.
    """
    services_url: str = ""
    """
    The address under which browsers reach that port; a star stands for a name that each job has, as in `https://*.jobs.example.org`.
    Without a star all jobs have one origin, and a browser is shown those of its own person only. Default: `http://*.localhost:PORT` on this
    machine alone, else that port of the gateway's host, without a star.
    """
    services_domain: Annotated[str, msgspec.Meta(pattern=_DOMAIN)] = ""
    """
    The domain, as in `tcp.example.org`, below which programs that speak TLS and no HTTP reach services of the kind `tcp`, as
    `db-12-0.tcp.example.org`; with `rest`. All names below it lead to `services_tls_port`, and `http_certificate` is for `*.` and it.
    Default: there is no such port.
    """
    services_tls_port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    """
    Port, on `http_host`, at which that is. 0: a free one, which is kept in `gateway/services_tls_port` in `home`.
    """
    tunnels: Count = 2_000
    """Jobs that publish services here at once."""
    service_connections: Count = 4_000
    """Connections of people to services of jobs that are open at once, through this gateway."""
    service_connections_of_one: Count = 400
    """Of one person."""
    service_patience: Annotated[float, msgspec.Meta(ge=0.1, le=86400)] = 120.0
    """Seconds within which a service of a job begins its answer to a request."""
    accounting: str = "accounting"
    """The name of the accounting that fills the tables."""
    collector: str = "collector"
    """The name of the collector that is asked."""
    negotiator: str = "negotiator"
    """The name of the negotiator that is asked."""

    def measured(self) -> bool:
        """What it publishes is shown on its own port, too."""
        return super().measured() or bool(self.http_port) or self.rest

    def __post_init__(self) -> None:
        if bool(self.http_certificate) != bool(self.http_key):
            raise ValueError(
                "http_key: a certificate and its key are given together (http_certificate, http_key)"
            )
        if self.http_client_ca and not self.http_certificate:
            raise ValueError(
                "http_client_ca: only a listener with http_certificate and http_key can ask for certificates"
            )
        if bool(self.prominence_bucket) != bool(self.prominence_bucket_key):
            raise ValueError(
                "prominence_bucket: a bucket and the file of its key are given together (prominence_bucket_key)"
            )
        if self.prominence and not self.rest:
            raise ValueError("prominence: it is a part of the REST interface, which rest switches on")
        if self.services_domain and not self.rest:
            raise ValueError("services_domain: it is a part of the REST interface, which rest switches on")
        if self.services_tls_port and not self.services_domain:
            raise ValueError("services_tls_port: programs say a name there, which services_domain ends")
        if self.services_url and (why := why_no_services_url(self.services_url)):
            raise ValueError(f"services_url: {why}")
        if self.rest and self.http_host not in LOOPBACK and not self.http_certificate:
            raise ValueError(
                f"rest: on '{self.http_host}' tokens would be sent where others can read them: give http_certificate and http_key, or "
                "leave http_host at 127.0.0.1 and have a proxy in front"
            )
