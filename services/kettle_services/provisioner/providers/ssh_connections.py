"""One connection to each host, kept, with a bound on what is done at the same time."""

import asyncio
from typing import Final, Self

import asyncssh
import msgspec

from kettle_services.provisioner.domain.words import cleaned
from kettle_services.provisioner.port import ProviderError, UnavailableError
from kettle_wire.leases import ErrorClass

_KEEPALIVE_S: Final = 15


class HostAddress(msgspec.Struct, frozen=True):
    """Where a host is, and as whom it is used."""

    host: str
    user: str | None
    port: int

    @classmethod
    def read(cls, text: str) -> Self:
        """Of `host`, `user@host` or `user@host:port`."""
        user, _, place = text.rpartition("@")
        host, _, port = place.rpartition(":") if place.count(":") == 1 else (place, "", "")
        if not host or (port and not port.isdecimal()):
            raise ProviderError(
                ErrorClass.CONFIG, f"hosts: {text} is no host: write HOST, USER@HOST or USER@HOST:PORT"
            )
        return cls(host, user or None, int(port or 22))


class Host:
    """A host."""

    def __init__(
        self, address: HostAddress, key: asyncssh.SSHKey, known_hosts: str, *, sessions: int, patience: float
    ) -> None:
        self._address: Final = address
        self._key: Final = key
        self._known_hosts: Final = known_hosts
        self._patience: Final = patience
        self._sessions: Final = asyncio.Semaphore(sessions)
        self._opening: Final = asyncio.Lock()
        self._connection: asyncssh.SSHClientConnection | None = None

    async def connect(self) -> asyncssh.SSHClientConnection:
        """
        The connection, opened unless it is.

        Raises:
            UnavailableError: it does not answer.
            ProviderError: it does not take our key, or cannot prove that it is the one that is meant.
        """
        async with self._opening:
            if self._connection is None or self._connection.is_closed():
                self._connection = await self._opened()
            return self._connection

    async def _opened(self) -> asyncssh.SSHClientConnection:
        where = self._address
        options = {} if where.user is None else {"username": where.user}
        try:
            async with asyncio.timeout(self._patience):
                return await asyncssh.connect(
                    where.host,
                    where.port,
                    client_keys=[self._key],
                    known_hosts=self._known_hosts,
                    agent_path=None,
                    config=None,
                    keepalive_interval=_KEEPALIVE_S,
                    **options,
                )
        except asyncssh.HostKeyNotVerifiable as error:
            raise self._refused(f"it does not prove that it is the host that is meant: {error}") from None
        except asyncssh.PermissionDenied as error:
            raise self._refused(f"it does not take our key: {error}") from None
        except TimeoutError:
            raise UnavailableError(f"host {where.host} does not answer within {self._patience:g} s") from None
        except (OSError, asyncssh.Error) as error:
            raise UnavailableError(cleaned(f"host {where.host}: {error}")) from None

    def _refused(self, words: str) -> ProviderError:
        return ProviderError(ErrorClass.AUTH, cleaned(f"host {self._address.host}: {words}"))

    async def run(self, script: str) -> str:
        """
        What a script printed.

        Raises:
            UnavailableError: its end was not seen.
            ProviderError: as `connect`.
        """
        async with self._sessions:
            connection = await self.connect()
            try:
                async with asyncio.timeout(self._patience):
                    process = await connection.create_process("sh -s", encoding="utf-8", errors="replace")
                    try:
                        output, _ = await process.communicate(script)
                    finally:
                        process.close()  # without waiting for the host, which may be silent
            except (TimeoutError, OSError, asyncssh.Error) as error:
                connection.abort()  # the next question gets a new one
                said = str(error) or f"no answer within {self._patience:g} s"
                raise UnavailableError(cleaned(f"host {self._address.host}: {said}")) from None
        return str(output or "")

    async def close(self) -> None:
        """Leave it."""
        if self._connection is not None:
            self._connection.close()
            await self._connection.wait_closed()
            self._connection = None
