"""Running the commands of a batch system on this machine."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from typing import Final

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
        try:
            process = await asyncio.create_subprocess_exec(
                *words, stdin=pipe, stdout=pipe, stderr=pipe, env=self._environment
            )
        except OSError as error:
            raise ProviderError(
                ErrorClass.CONFIG, f"{words[0]} cannot be run here: {error.strerror}"
            ) from None
        try:
            output, errors = await process.communicate(standard_input.encode())
        except asyncio.CancelledError:
            if process.returncode is None:
                process.kill()
            await process.wait()
            raise
        status = process.returncode
        return Ran(
            -1 if status is None else status, output.decode(errors="replace"), errors.decode(errors="replace")
        )
