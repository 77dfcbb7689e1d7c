"""
What a scheduler's or worker's program is told by its session: how it proves itself, where the scheduler is, and how others
come to it.
"""

# distributed has no types:
# pyright: reportUnknownArgumentType=false

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Protocol

from kettle.dask.credentials import Credentials, OpenStream, read_credentials
from kettle.dask.reports import Superior

_LOOK_S: Final = 0.2
"""Of a file that another program writes, on whatever file system, no event tells."""


class Membership(Protocol):
    """Of one program in its session."""

    credentials: Credentials
    open_stream: OpenStream | None
    """The way to members in other networks; None if there is none."""
    superior: Superior | None
    """Who decides how many workers there are; None: nobody does."""

    async def publish(self, service: str, port: int, kind: str) -> None:
        """Have the gateway lead to a port of ours; `kind`: `tcp` or `http`."""

    async def scheduler(self, after: str = "") -> tuple[str, Mapping[str, str]]:
        """
        The scheduler's address and its versions, as soon as there is one; `after`: an address that is no longer it.
        """
        ...

    async def announce(self, contact: str) -> None:
        """Tell where the scheduler is, which we are; where there is a superior, the reports say it."""


class SharedDirectory:
    """
    Of programs that share a directory, as that of a person who starts them as jobs of a personal pool by hand.

    It has the files of `kettle.dask.credentials`, and the scheduler's address once that runs.
    """

    CONTACT: Final = "scheduler"

    def __init__(self, directory: Path) -> None:
        """Raises CredentialsError if its files cannot be read."""
        self._contact = directory / self.CONTACT
        self.credentials = read_credentials(directory)
        self.open_stream: OpenStream | None = None
        self.superior: Superior | None = None

    async def publish(self, service: str, port: int, kind: str) -> None:
        """Nobody comes from elsewhere."""

    async def scheduler(self, after: str = "") -> tuple[str, Mapping[str, str]]:
        """When its file is there."""
        while True:
            if self._contact.exists() and (found := self._contact.read_text()) not in {"", after}:
                return found, {}
            await asyncio.sleep(_LOOK_S)

    async def announce(self, contact: str) -> None:
        """In a file that is complete once it is there."""
        new = self._contact.with_name(f".{self.CONTACT}.new")
        new.write_text(contact)
        new.replace(self._contact)
