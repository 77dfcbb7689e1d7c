"""Running the commands of a batch system on this machine."""

import asyncio
import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Final

import msgspec

from kettle_services.provisioner.port import ProviderError
from kettle_wire.leases import ErrorClass

_KEPT: Final = ("HOME", "LOGNAME", "PATH", "USER", "TZ")
"""Of our environment: whatever else is there would steer the commands, and become part of what they start."""


class Ran(msgspec.Struct, frozen=True):
    """How a command ended, and what it wrote."""

    status: int
    output: str
    errors: str


class LocalCommands:
    """Commands of this machine, with an environment of their own."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        self._environment: Final = {**kept, "LC_ALL": "C.UTF-8", **environment}

    async def run(self, words: Sequence[str], standard_input: str = "") -> Ran:
        """
        Run one to its end.  Who is cancelled ends it.

        Raises:
            ProviderError: it is not installed here.
        """
        pipe = asyncio.subprocess.PIPE
        with _in_memory(standard_input.encode()) as given:
            try:
                process = await asyncio.create_subprocess_exec(
                    *words, stdin=given, stdout=pipe, stderr=pipe, env=self._environment
                )
            except OSError as error:
                raise ProviderError(
                    ErrorClass.CONFIG, f"{words[0]} cannot be run here: {error.strerror}"
                ) from None
        try:
            output, errors = await process.communicate()
        except asyncio.CancelledError:
            if process.returncode is None:
                process.kill()
            await process.wait()
            raise
        status = process.returncode
        return Ran(
            -1 if status is None else status, output.decode(errors="replace"), errors.decode(errors="replace")
        )


@contextmanager
def _in_memory(data: bytes) -> Generator[IO[bytes]]:
    """
    A file that is on no disk: what a command is given may hold a secret, and a pipe would break if it ended without reading it.
    """
    with open(os.memfd_create("standard input"), "w+b") as file:  # noqa: PTH123 - it has no path
        file.write(data)
        file.seek(0)
        yield file
