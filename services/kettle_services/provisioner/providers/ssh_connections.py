"""Hosts on which machines are made, as the port of providers says what is wrong with them."""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import asyncssh

from kettle.commands.port import CommandError, HostRefusedError
from kettle.commands.ssh_host import HostAddress, SshHost
from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import ProviderError, UnavailableError
from kettle_wire.leases import ErrorClass


def address(text: str) -> HostAddress:
    """Of `host`, `user@host` or `user@host:port`.  Raises ProviderError."""
    try:
        return HostAddress.read(text)
    except ValueError as error:
        raise ProviderError(ErrorClass.CONFIG, f"hosts: {error}") from None


class Host:
    """A host."""

    def __init__(
        self, where: HostAddress, key: asyncssh.SSHKey, known_hosts: str, *, sessions: int, patience: float
    ) -> None:
        self._host: Final = SshHost(where, key, known_hosts, sessions=sessions, patience=patience)
        self._patience: Final = patience

    async def connect(self) -> None:
        """
        Connect, unless it is.

        Raises:
            UnavailableError: it does not answer.
            ProviderError: it does not take our key, or cannot prove that it is the one that is meant.
        """
        with _said():
            await self._host.connect()

    async def run(self, script: str) -> str:
        """
        What a script printed.

        Raises:
            UnavailableError: its end was not seen.
            ProviderError: as `connect`.
        """
        with _said():
            return await self._host.run(script, within=self._patience)

    async def close(self) -> None:
        """Leave it."""
        await self._host.close()


@contextmanager
def _said() -> Generator[None]:
    try:
        yield
    except HostRefusedError as error:
        raise ProviderError(ErrorClass.AUTH, cleaned(str(error))) from None
    except CommandError as error:
        raise UnavailableError(cleaned(str(error))) from None
