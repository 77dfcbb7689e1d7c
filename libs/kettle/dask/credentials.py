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

AUTHORITY: Final = "authority.pem"
CERTIFICATE: Final = "certificate.pem"
KEY: Final = "key.pem"

OpenStream = Callable[[str, str], Awaitable["tuple[asyncio.StreamReader, asyncio.StreamWriter]"]]
"""Opens a stream to a service of a job: the job's id, the service's name."""
OPENER: Final = "open_stream"
"""Under this name a connection is told how to come to a service through the gateway."""


class CredentialsError(Exception):
    """They cannot be had, or not be used; the message is a sentence."""


class Credentials(msgspec.Struct, frozen=True):
    """Of one member; all PEM."""

    authority: str
    certificate: str
    key: str

    def __repr__(self) -> str:
        return "Credentials(...)"


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
