"""
What a machine's owner allows to containers, as it is passed to each starter, and why a container cannot be made.
"""

from typing import Final, Literal

import msgspec

from kettle_wire.codes import HoldCode, VacateCode

Network = Literal["host", "none"]


ENGINES: Final = frozenset({"docker", "podman"})
"""Runtimes that have a store of images of their own."""


class FoundRuntime(msgspec.Struct, frozen=True):
    """A container runtime that works on this machine: it has run a program."""

    name: str
    path: str
    options: list[str] = []
    """Of the command itself, before what it is to do."""

    @property
    def is_engine(self) -> bool:
        """Whether it has a store of images of its own."""
        return self.name in ENGINES


class ContainerPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """How containers run here."""

    runtimes: list[FoundRuntime]
    """The most preferred first."""
    images: str
    """Directory of unpacked images."""
    limit: int
    """Bytes of images that are kept when nobody uses them, and the most that one image may have."""
    binds: list[str] = []
    """`SOURCE`, `SOURCE:DESTINATION` or either with `:rw`; read-only without it."""
    network: Network = "host"
    """`none` wins over what a job asks for."""
    devices: list[str] = []
    """Device files for jobs that have GPUs; of another job's GPU none is shown."""
    always: bool = False
    """Jobs that bring no image run in a container too, that shows the machine's own files."""
    auth_file: str = ""
    """What engines log into registries with; empty: what their commands find for our account."""
    pull_s: float = 1200.0
    """The longest that an engine may take to get an image, in seconds."""

    @property
    def engines(self) -> list[FoundRuntime]:
        """The runtimes that have a store of images of their own."""
        return [found for found in self.runtimes if found.is_engine]


class ContainerError(Exception):
    """
    The container cannot be made.  `code` is a HoldReasonCode, or a VacateReasonCode from 1000 on; the message is for
    people.
    """

    def __init__(self, message: str, *, code: int = HoldCode.InvalidDockerImage, subcode: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.subcode = subcode


def machine_error(message: str) -> ContainerError:
    """The machine's fault: the job should run elsewhere."""
    return ContainerError(message, code=VacateCode.ContainerError)
