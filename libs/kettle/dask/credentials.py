"""
What the members of a session prove themselves with to each other: a certificate of the session's own authority.

Everybody shows one, listeners and those who connect, and believes no other authority: who has none gets no further than the
first bytes, be it on the same machine.
"""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    import asyncio

    from distributed.security import Security

AUTHORITY: Final = "authority.pem"
CERTIFICATE: Final = "certificate.pem"
KEY: Final = "key.pem"
OPENER: Final = "open_stream"
"""Under this name a connection of Dask is told how to come to a service through the gateway."""

OpenStream = Callable[[str, str], Awaitable["tuple[asyncio.StreamReader, asyncio.StreamWriter]"]]
"""Opens a stream to a service of a job: the job's id, the service's name."""


class CredentialsError(Exception):
    """They cannot be had, or not be used; the message is a sentence."""


class Credentials(msgspec.Struct, frozen=True):
    """Of one member; all PEM."""

    authority: str
    certificate: str
    key: str

    def __repr__(self) -> str:
        return "Credentials(...)"

    def security(self, open_stream: OpenStream | None = None) -> "Security":
        """
        What Dask's connections go by.

        `open_stream`: the way through the gateway; without it only those of the own network are reached.
        """
        from distributed.security import Security

        import kettle.dask.comm as _  # Dask's connections know kettle:// from now on

        return Security(
            require_encryption=True,
            tls_ca_file=self.authority,
            tls_min_version=None,
            extra_conn_args={OPENER: open_stream},
            **{f"tls_{role}_cert": self.certificate for role in ("client", "scheduler", "worker")},
            **{f"tls_{role}_key": self.key for role in ("client", "scheduler", "worker")},
        )


def read_credentials(directory: Path) -> Credentials:
    """
    Those in the files of a directory.

    Raises:
        CredentialsError: one of them cannot be read.
    """
    try:
        return Credentials(*((directory / name).read_text() for name in (AUTHORITY, CERTIFICATE, KEY)))
    except OSError as error:
        raise CredentialsError(f"{error.filename} cannot be read: {error.strerror}") from error


def write_credentials(directory: Path, credentials: Credentials) -> None:
    """Into files that only their owner reads."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, text in (
        (AUTHORITY, credentials.authority), (CERTIFICATE, credentials.certificate), (KEY, credentials.key),
    ):  # fmt: skip
        path = directory / name
        path.touch(mode=0o600)
        path.write_text(text)
