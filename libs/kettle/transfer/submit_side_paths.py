"""
Where the files of a job come from on the submitter's side, and where its results go there, by HTCondor's rules.
"""

from pathlib import PurePosixPath
from typing import Final

import msgspec

from kettle.transfer.exclusions import ATTRIBUTE, Exclusions, exclusions
from kettle.transfer.file_lists import is_url, items, job_plugins, leaves, placed, remaps
from kettle_wire.ads.types import Ad

NULL: Final = "/dev/null"
STDOUT: Final = "_condor_stdout"
STDERR: Final = "_condor_stderr"
_STREAMS: Final = {STDOUT: "Out", STDERR: "Err"}
PROXY: Final = "x509userproxy"
"""
The file by which a job is known to grid services; it holds a key, and these take no notice of one that others may read.
"""
_PRIVATE: Final = 0o600


class TransferPath(msgspec.Struct, frozen=True):
    """
    A path on the submit side and the place of it in the sandbox; `contents`: of a directory, not the directory.
    """

    path: PurePosixPath
    name: str
    executable: bool = False
    contents: bool = False
    saved: bool = False
    """An earlier run of the job left it for the next one."""
    mode: int = 0
    """Its permission bits in the sandbox; 0: those that it has."""


def text(ad: Ad, name: str, default: str = "") -> str:
    """A string attribute."""
    value = ad.get(name, default)
    return value if isinstance(value, str) else default


def transfers(ad: Ad) -> bool:
    """
    Whether files are moved at all; else the job runs where the submitter's files are, on a shared file system.
    """
    return text(ad, "ShouldTransferFiles").upper() != "NO"


def inputs(ad: Ad) -> list[TransferPath]:
    """
    What goes into the sandbox, in the order in which it is placed there: the last of two equal names wins.

    URLs are not among them: the worker fetches those itself.
    """
    if not transfers(ad):
        return []
    iwd = PurePosixPath(text(ad, "Iwd", "/"))
    wanted: list[TransferPath] = []
    if ad.get("TransferExecutable", True) is not False:
        command = iwd / text(ad, "Cmd")
        wanted.append(TransferPath(command, command.name, executable=True))
    if text(ad, "In", NULL) != NULL and ad.get("TransferIn", True) is not False:
        stdin = iwd / text(ad, "In")
        wanted.append(TransferPath(stdin, stdin.name))
    preserve = ad.get("PreserveRelativePaths") is True
    for item in listed(ad):
        if not is_url(item):
            name = placed(item, preserve=preserve)
            wanted.append(TransferPath(iwd / item, name, contents=item.endswith("/")))
    plugins = (iwd / path for path in dict.fromkeys(job_plugins(text(ad, "TransferPlugins")).values()))
    wanted += (TransferPath(path, path.name, executable=True) for path in plugins)
    if certificate := text(ad, PROXY):
        wanted.append(TransferPath(iwd / certificate, PurePosixPath(certificate).name, mode=_PRIVATE))
    return wanted


def listed(ad: Ad) -> list[str]:
    """The input files that a job names beside its program and its standard input, URLs among them."""
    return [*items(text(ad, "TransferInput")), *items(text(ad, "PublicInputFiles"))]


def excluded(ad: Ad) -> Exclusions:
    """What is not moved with the directory in which it lies.  Raises ManifestError."""
    return exclusions(text(ad, ATTRIBUTE))


def results(ad: Ad) -> list[str]:
    """
    The files and directories that a job names to be fetched, by their names in the sandbox.

    Of a directory whose contents alone are wanted nothing is known by name.
    """
    preserve = ad.get("PreserveRelativePaths") is True
    return [
        placed(item, preserve=preserve)
        for item in items(text(ad, "TransferOutput"))
        if not (is_url(item) or leaves(item) or item.endswith("/"))
    ]


def destination(ad: Ad, name: str) -> PurePosixPath | None:
    """
    Where a file that the job left goes; None if nobody wants it. Raises ValueError for a name that leads elsewhere.
    """
    if stream := _STREAMS.get(name):
        target = text(ad, stream, NULL)
        return None if target == NULL else _results_directory(ad) / target
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ValueError(f"the worker names an output file {name!r} outside of its sandbox")
    return _results_directory(ad) / (remaps(text(ad, "TransferOutputRemaps")).find(name) or name)


def _results_directory(ad: Ad) -> PurePosixPath:
    return PurePosixPath(text(ad, "Iwd", "/")) / text(ad, "OutputDirectory")
