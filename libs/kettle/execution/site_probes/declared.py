"""The probes of a machine as its settings declare them, and what one of them finds."""

import re
from typing import Annotated, Final

import msgspec

from kettle_wire.ads import Ad

Path = Annotated[str, msgspec.Meta(pattern=r"^(/[^/\0]+)+$")]
Below = Annotated[str, msgspec.Meta(pattern=r"^([^/\0]+(/[^/\0]+)*)?$")]
"""A path without a slash at its beginning; empty: none."""
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_]")
CHECKED: Final = "LastChecked"
"""The end of the names of attributes that say when something was probed, in seconds since the epoch."""


class Probe(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", forbid_unknown_fields=True):
    """What all of them have."""

    name: Annotated[str, msgspec.Meta(max_length=100)] = ""
    """What reasons call it; empty: what it looks at."""
    required: bool = False
    """While it fails, the machine takes no jobs of the pool."""
    period: Annotated[float, msgspec.Meta(ge=1, le=86_400)] = 300.0
    """Seconds from its end to the next time; at most 60 while it fails."""
    timeout: Annotated[float, msgspec.Meta(gt=0, le=3_600)] = 10.0
    """Seconds after which it is killed, and has failed."""
    memory: Annotated[int, msgspec.Meta(ge=64, le=65_536)] = 512
    """MiB of address space that it may have, with Python."""

    @property
    def target(self) -> str:
        """What it looks at."""
        raise NotImplementedError

    @property
    def label(self) -> str:
        """What reasons call it."""
        return self.name or self.target


class CvmfsProbe(Probe, frozen=True, kw_only=True, tag="cvmfs"):
    """Reads a file of a CVMFS repository, or its top directory."""

    repository: Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9.-]{0,199}$")]
    file: Below = ""
    """A file that is known to be in it; empty: its top directory is listed."""
    mount: Path = "/cvmfs"
    """Where repositories are mounted."""

    @property
    def target(self) -> str:
        """The repository."""
        return f"CVMFS repository {self.repository}"

    @property
    def spelt(self) -> str:
        """The repository as a part of names of attributes."""
        return _NO_NAME.sub("_", self.repository)


class XrootdProbe(Probe, frozen=True, kw_only=True, tag="xrootd"):
    """Speaks to a cache of XRootD."""

    url: Annotated[str, msgspec.Meta(pattern=r"^root://[A-Za-z0-9_.\[\]:-]+$")]
    """`root://HOST:PORT`."""
    file: Below = ""
    """A file that is known to be behind it, and is asked for; empty: the cache only has to answer."""

    @property
    def target(self) -> str:
        """The cache."""
        return f"XRootD cache {self.url}"


class ImageProbe(Probe, frozen=True, kw_only=True, tag="image"):
    """Looks whether an image for containers is there, and can be read."""

    path: Path

    @property
    def target(self) -> str:
        """The image."""
        return f"image {self.path}"


class ContainerProbe(Probe, frozen=True, kw_only=True, tag="container"):
    """Runs a program in a container, as a job's would run."""

    timeout: Annotated[float, msgspec.Meta(gt=0, le=3_600)] = 120.0
    """Seconds after which it is killed, and has failed."""
    memory: Annotated[int, msgspec.Meta(ge=64, le=65_536)] = 4096
    """MiB of address space that it may have: engines are written in Go, which asks for much of it."""

    @property
    def target(self) -> str:
        """What it tries."""
        return "containers"


class ProgramProbe(Probe, frozen=True, kw_only=True, tag="program"):
    """
    A program of the machine's owner (STARTD_CRON): it fails by its exit status, and prints lines `Name = expression`.

    It runs with the rights of the startd.
    """

    command: Annotated[list[str], msgspec.Meta(min_length=1)]
    """Absolute path and arguments (`<JobName>_EXECUTABLE`, `<JobName>_ARGS`)."""
    prefix: Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z_][A-Za-z0-9_]*)?$")] = ""
    """Put before the names of the attributes that it prints (`<JobName>_PREFIX`)."""
    environment: dict[str, str] = {}
    """More variables (`<JobName>_ENV`)."""
    directory: str = "/"
    """Where it works (`<JobName>_CWD`)."""

    def __post_init__(self) -> None:
        if not self.command[0].startswith("/"):
            raise ValueError(f"the program {self.command[0]!r} of a probe is to be named by an absolute path")

    @property
    def target(self) -> str:
        """The program."""
        return self.command[0].rpartition("/")[2]


AnyProbe = CvmfsProbe | XrootdProbe | ImageProbe | ContainerProbe | ProgramProbe


class Finding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a probe found."""

    why: str = ""
    """Why it failed, as the end of a sentence; empty: it has not."""
    seconds: float = 0.0
    """How long it took."""
    attributes: Ad = {}
    """What is known besides."""
    at: float = 0.0
    """When, seconds since the epoch; 0: it has not been run yet."""
