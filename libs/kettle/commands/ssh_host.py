"""One connection to a host, kept, with a bound on what is done at the same time."""

import asyncio
from typing import Final, Self

import asyncssh
import msgspec

from kettle.commands.port import CommandError, EndNotSeenError, HostRefusedError, NotStartedError

_KEEPALIVE_S: Final = 15


class HostAddress(msgspec.Struct, frozen=True):
    """Where a host is, and as whom it is used."""

    host: str
    user: str | None
    port: int

    @classmethod
    def read(cls, text: str) -> Self:
        """Of `host`, `user@host` or `user@host:port`.  Raises ValueError."""
        user, _, place = text.rpartition("@")
        host, _, port = place.rpartition(":") if place.count(":") == 1 else (place, "", "")
        if not host or (port and not port.isdecimal()):
            raise ValueError(f"{text} is no host: write HOST, USER@HOST or USER@HOST:PORT")
        return cls(host, user or None, int(port or 22))


class PrintedError(EndNotSeenError):
    """The end of a script was not seen."""

    def __init__(self, words: str, printed: str) -> None:
        super().__init__(words)
        self.printed = printed
        """What it had printed until then."""


class SshHost:
    """A host."""

    def __init__(
        self, address: HostAddress, key: asyncssh.SSHKey, known_hosts: str, *, sessions: int, patience: float
    ) -> None:
        """`sessions` at the same time; `patience`: seconds in which a connection is made."""
        self._address: Final = address
        self._key: Final = key
        self._known_hosts: Final = known_hosts
        self._patience: Final = patience
        self.sessions: Final = asyncio.Semaphore(sessions)
        """A command or a transfer of files takes one."""
        self._opening: Final = asyncio.Lock()
        self._connection: asyncssh.SSHClientConnection | None = None

    async def connect(self) -> asyncssh.SSHClientConnection:
        """
        The connection, opened unless it is.

        Raises:
            NotStartedError: it does not answer.
            HostRefusedError: as its name says.
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
            raise NotStartedError(f"host {where.host} does not answer within {self._patience:g} s") from None
        except (OSError, asyncssh.Error) as error:
            raise NotStartedError(f"host {where.host}: {error}") from None

    def _refused(self, words: str) -> CommandError:
        return HostRefusedError(f"host {self._address.host}: {words}")

    async def run(self, script: str, *, within: float) -> str:
        """
        What a script for `sh -s` printed, to its end.

        Raises:
            NotStartedError: it was not run.
            PrintedError: its end was not seen.
        """
        async with self.sessions:
            connection = await self.connect()
            process: asyncssh.SSHClientProcess[str] | None = None
            try:
                async with asyncio.timeout(within):
                    process = await connection.create_process("sh -s", encoding="utf-8", errors="replace")
                    output, _ = await process.communicate(script)
                printed = str(output or "")
                if process.exit_status is None:  # what is lost with a connection ends like what is all there
                    connection.abort()
                    raise PrintedError(f"host {self._address.host}: the connection was lost", printed)
                return printed
            except (TimeoutError, OSError, asyncssh.Error) as error:
                said = str(error) or f"no answer within {within:g} s"
                words = f"host {self._address.host}: {said}"
                connection.abort()  # the next question gets a new one
                if process is None and not isinstance(error, TimeoutError):
                    raise NotStartedError(words) from None
                printed = "" if process is None else str(process.collect_output()[0] or "")
                raise PrintedError(words, printed) from None
            finally:
                if process is not None:
                    process.close()  # without waiting for the host, which may be silent

    async def close(self) -> None:
        """Leave it."""
        if self._connection is not None:
            self._connection.close()
            await self._connection.wait_closed()
            self._connection = None
