"""What Dask's connections are told of a member's credentials, and of the way through the gateway."""

from distributed.security import Security

from kettle.dask.credentials import OPENER, Credentials, OpenStream

_ROLES = ("client", "scheduler", "worker")


def security_of(credentials: Credentials, open_stream: OpenStream | None = None) -> Security:
    """
    For a client, a scheduler or a worker.

    `open_stream`: the way through the gateway; without it only those of the own network are reached.
    """
    return Security(
        require_encryption=True,
        tls_ca_file=credentials.authority,
        extra_conn_args={OPENER: open_stream},
        **{f"tls_{role}_cert": credentials.certificate for role in _ROLES},
        **{f"tls_{role}_key": credentials.key for role in _ROLES},
    )
