"""Commands of this machine, with an environment of their own."""

import asyncio
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Final

from kettle.accounts.lookup import Accounts, StrangerError
from kettle.commands.port import EndNotSeenError, NotStartedError, Ran

_KEPT: Final = ("HOME", "LOGNAME", "PATH", "USER", "TZ")
"""Of our environment: whatever else is there would steer the commands, and become part of what they start."""
_SETPRIV: Final = "/usr/bin:/bin:/usr/sbin:/sbin"
_GRACE_S: Final = 5.0
MOST_BYTES: Final = 64 << 20
"""That a command may write: a batch system with 100,000 jobs writes a third of it."""
_LATE: Final = frozenset({124, -9, 137})
"""What `timeout` ends with when it has ended the command, or was ended itself."""


class LocalCommands:
    """
    Runs commands here, as other accounts if this process may become them.

    They are ended by `timeout`, which outlives us: a command that was begun ends also when this process is killed.
    """

    lingering: float = _GRACE_S

    def __init__(self, environment: Mapping[str, str], accounts: Accounts | None = None) -> None:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._environment: Final = {**kept, "LC_ALL": "C.UTF-8", **environment}
        self._accounts: Final = accounts or Accounts()

    async def run(
        self, words: Sequence[str], standard_input: str = "", *, within: float, account: str = ""
    ) -> Ran:
        """As the port says."""
        become, environment = await self._become(account)
        if shutil.which(words[0], path=environment.get("PATH")) is None:
            raise NotStartedError(f"{words[0]} is not installed here")
        limited = [*become, "timeout", f"--kill-after={_GRACE_S:g}", f"{within:g}", *words]
        with _in_memory(standard_input.encode()) as given:
            try:
                transport, spoken = await asyncio.get_running_loop().subprocess_exec(
                    _Spoken, *limited, stdin=given, env=environment, cwd="/"
                )
            except OSError as error:
                raise NotStartedError(f"{words[0]} cannot be run here: {error.strerror}") from None
        try:
            async with asyncio.timeout(within + 2 * _GRACE_S):
                await spoken.ended.wait()
        except TimeoutError:
            # Who has the account may stop `timeout`, and leave something behind that holds the other ends.
            await _kill(transport, spoken)
            raise EndNotSeenError(
                f"{words[0]} did not end within {within:g} s, or what it has started"
            ) from None
        except asyncio.CancelledError:
            if transport.get_returncode() is None:
                transport.terminate()  # which `timeout` passes on
            await spoken.exited.wait()
            raise
        else:
            if spoken.too_much:
                await _kill(transport, spoken)
                raise EndNotSeenError(f"{words[0]} says more than {MOST_BYTES} bytes, and was ended")
        finally:
            transport.close()
        status = transport.get_returncode()
        if status is None or status in _LATE:
            raise EndNotSeenError(f"{words[0]} did not end within {within:g} s")
        return Ran(status, spoken.of(1), spoken.of(2))

    async def _become(self, account: str) -> tuple[Sequence[str], Mapping[str, str]]:
        """
        The words before a command by which it is run as an account: the loop of services cannot do that itself.
        """
        try:
            rights = await self._accounts.find(account) if account else None
        except StrangerError as error:
            raise NotStartedError(str(error)) from None
        if rights is None:
            return [], self._environment
        if (setpriv := shutil.which("setpriv", path=_SETPRIV)) is None:
            raise NotStartedError("setpriv is not installed here (Debian: util-linux)")
        groups = ",".join(map(str, rights.groups))
        among = [f"--groups={groups}"] if groups else ["--clear-groups"]
        become = [setpriv, f"--reuid={rights.uid}", f"--regid={rights.gid}", *among, "--"]
        return become, {**self._environment, "HOME": "/", "LOGNAME": account, "USER": account}

    async def close(self) -> None:
        """There is nothing to give up."""


class _Spoken(asyncio.SubprocessProtocol):
    """What a command writes until its end, and that of everything which has its pipes."""

    def __init__(self) -> None:
        self._left = MOST_BYTES
        self._written: Final = {1: bytearray(), 2: bytearray()}
        self.exited: Final = asyncio.Event()
        self.ended: Final = asyncio.Event()
        """It has ended and nothing holds its pipes, or it has written more than anybody needs."""

    @property
    def too_much(self) -> bool:
        """Whether it has written more than `MOST_BYTES`."""
        return self._left < 0

    def of(self, descriptor: int) -> str:
        """What it has written to standard output, 1, or to standard error, 2."""
        return self._written[descriptor].decode(errors="replace")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self._left -= len(data)
        if self.too_much:
            self.ended.set()
        else:
            self._written[fd] += data

    def process_exited(self) -> None:
        self.exited.set()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set()


async def _kill(transport: asyncio.SubprocessTransport, spoken: _Spoken) -> None:
    """End a command; what it has started is not waited for."""
    if transport.get_returncode() is None:
        transport.kill()
        with suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                await spoken.exited.wait()


@contextmanager
def _in_memory(data: bytes) -> Generator[IO[bytes]]:
    """
    A file on no disk: what a command is given may be secret, and a pipe breaks if it ends without reading.
    """
    with open(os.memfd_create("standard input"), "w+b") as file:  # noqa: PTH123 - it has no path
        file.write(data)
        file.seek(0)
        yield file
