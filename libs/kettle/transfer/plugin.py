"""
A plugin that moves files by URL, and the order for all of them together; a process that only gives orders needs no
more.
"""

from collections.abc import Sequence

import msgspec

from kettle.transfer.data_rules import DataRule
from kettle.transfer.file_lists import scheme_of
from kettle_wire.attempts import Ending
from kettle_wire.moved_files import FileRecord


class Plugin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A program of the machine's owner, one that the job brought along, or a module of ours."""

    path: str
    """Of the program; of the module, if it is `ours`."""
    methods: tuple[str, ...]
    """The URL schemes that it moves, in lower case."""
    several: bool = True
    """It takes a list of files; else it is called for each, with source and target."""
    ours: bool = False
    jobs: bool = False
    """The job's own: what it does wrong is the job's fault."""


class Cached(msgspec.Struct, frozen=True):
    """A file that was fetched from a URL before."""

    fd: int
    """Open for reading, also in the process that fetches."""
    tag: str
    """By what its server named this state: an ETag, or the date of its last change."""
    sha256: str


class Move(msgspec.Struct, frozen=True):
    """One file between a URL and the sandbox."""

    url: str
    path: str
    """Absolute, on the worker."""
    cached: Cached | None = None
    scheme: str = ""
    """
    Of the URL that was signed, if `url` is an address with a signature: who moves those gets it, and nobody else.
    """

    name: str = ""
    """The URL as the job has it, if `url` is another address."""
    rule: DataRule | None = None
    """How the site wants it to be fetched; None: from where its URL says."""

    @property
    def named(self) -> str:
        """The URL by which the job names it."""
        return self.name or self.url

    @property
    def method(self) -> str:
        """By which it is known who moves it."""
        return self.scheme or scheme_of(self.url)


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be moved, by whom and within which time."""

    upload: bool
    moves: list[Move]
    plugins: list[Plugin]
    """The first that knows a method moves it."""
    lifetime: float
    """Seconds that one plugin may take."""
    scratch: str
    """The sandbox: where plugins begin, and where questions and answers lie meanwhile."""
    environment: dict[str, str]
    manifest: str = ""
    """Path of a checkpoint's manifest: written here and sent last, or compared with what came."""
    place: str = ""
    """The URL below which the checkpoint is."""


class Moved(msgspec.Struct, frozen=True, kw_only=True):
    """How it went."""

    bytes: int = 0
    """Of all files that were moved."""
    tags: dict[str, str] = {}
    """By URL, what names the state of files that were fetched now, and may be kept."""
    files: list[FileRecord] = []
    """What became of each."""
    ending: Ending | None = None
    """Why the files could not be moved, or not all; None: they were."""


def chosen(plugins: Sequence[Plugin], moves: Sequence[Move]) -> list[tuple[Plugin | None, list[Move]]]:
    """Which plugin moves what: the first that knows the method; None for files that none can move."""
    by_method: dict[str, list[Move]] = {}
    for move in moves:
        by_method.setdefault(move.method, []).append(move)
    found: list[tuple[Plugin | None, list[Move]]] = []
    for method, wanted in by_method.items():
        plugin = next((each for each in plugins if method in each.methods), None)
        known = next((already for other, already in found if other is plugin), None)
        if known is None:
            found.append((plugin, wanted))
        else:
            known.extend(wanted)
    return found
