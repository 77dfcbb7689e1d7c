"""Which files a job takes along and where its results go, by HTCondor's rules."""

from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Final

import msgspec

from kettle.classad import NOTHING, ClassAd, EvaluationFailed, evaluate_attribute
from kettle.transfer.checkpoints import DIRECTORY, WHERE, CheckpointError, number_of, place, refuse
from kettle.transfer.exclude import ATTRIBUTE, Exclusions, exclusions
from kettle.transfer.manifest import (
    ManifestError,
    is_url,
    items,
    job_plugins,
    leaves,
    name_of_url,
    placed,
    remaps,
)
from kettle.wire.ads import Ad
from kettle.wire.work import OutputFile

NULL: Final = "/dev/null"
STDOUT: Final = "_condor_stdout"
STDERR: Final = "_condor_stderr"


class Wanted(msgspec.Struct, frozen=True):
    """A path on the submit side and the place of it in the sandbox; `contents`: of a directory, not the directory."""

    path: PurePosixPath
    name: str
    executable: bool = False
    contents: bool = False
    saved: bool = False
    """An earlier run of the job left it for the next one."""


def text(ad: Ad, name: str, default: str = "") -> str:
    """A string attribute."""
    value = ad.get(name, default)
    return value if isinstance(value, str) else default


def transfers(ad: Ad) -> bool:
    """Whether files are moved at all; else the job runs where the submitter's files are, on a shared file system."""
    return text(ad, "ShouldTransferFiles").upper() != "NO"


def check_inputs(ad: Ad) -> None:
    """
    Refuse lists that make no sense before a machine works for them.

    Raises ManifestError.
    """
    for item in _listed(ad):
        if is_url(item):
            name_of_url(item)
    job_plugins(text(ad, "TransferPlugins"))
    excluded(ad)


def check_outputs(ad: Ad) -> None:
    """The same for what comes back.  Raises ManifestError."""
    remaps(text(ad, "TransferOutputRemaps"))
    for item in items(text(ad, "TransferOutput")):
        if leaves(item):
            raise ManifestError(f"the output file {item} leads out of the sandbox")
    if checkpoints := text(ad, "CheckpointDestination"):
        try:
            refuse(checkpoints)
        except CheckpointError as error:
            raise ManifestError(str(error)) from error


def inputs(ad: Ad) -> list[Wanted]:
    """
    What goes into the sandbox, in the order in which it is placed there: the last of two equal names wins.

    URLs are not among them: the worker fetches those itself.
    """
    if not transfers(ad):
        return []
    iwd = PurePosixPath(text(ad, "Iwd", "/"))
    wanted: list[Wanted] = []
    if ad.get("TransferExecutable", True) is not False:
        command = iwd / text(ad, "Cmd")
        wanted.append(Wanted(command, command.name, executable=True))
    if text(ad, "In", NULL) != NULL and ad.get("TransferIn", True) is not False:
        stdin = iwd / text(ad, "In")
        wanted.append(Wanted(stdin, stdin.name))
    preserve = ad.get("PreserveRelativePaths") is True
    for item in _listed(ad):
        if not is_url(item):
            name = placed(item, preserve=preserve)
            wanted.append(Wanted(iwd / item, name, contents=item.endswith("/")))
    plugins = (iwd / path for path in dict.fromkeys(job_plugins(text(ad, "TransferPlugins")).values()))
    return [*wanted, *(Wanted(path, path.name, executable=True) for path in plugins)]


def _listed(ad: Ad) -> list[str]:
    return [*items(text(ad, "TransferInput")), *items(text(ad, "PublicInputFiles"))]


def excluded(ad: Ad) -> Exclusions:
    """What is not moved with the directory in which it lies.  Raises ManifestError."""
    return exclusions(text(ad, ATTRIBUTE))


def limit(ad: Ad, name: str, most: int) -> int:
    """
    The bytes that a limit in MB (MiB) of the job allows; `most` if it has none, or is not to be understood.

    An expression may look at the job only.
    """
    try:
        value = evaluate_attribute(name, ClassAd.from_wire(ad), None, NOTHING)
    except EvaluationFailed:
        return most
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < most:
        return most
    return min(most, int(value * (1 << 20)))


def is_graceful(ad: Ad, *, default: bool) -> bool:
    """
    Whether a job that is removed, held or vacated is given time to end (WantGracefulRemoval).
    """
    try:
        value = evaluate_attribute("WantGracefulRemoval", ClassAd.from_wire(ad), None, NOTHING)
    except EvaluationFailed:
        return default
    return value != 0 if isinstance(value, bool | int | float) else default


def stranger(ad: Ad, account: str) -> str:
    """
    Why a job of this owner cannot be looked after by a shadow that acts as `account`; empty if it can.

    Whoever names a file gets it read and written with the rights of the account.
    """
    owner = text(ad, "Owner")
    if owner == account:
        return ""
    return f"the job belongs to {owner or 'nobody'}, and its files can be reached as {account} only"


def check_checkpoint(ad: Ad, files: Iterable[OutputFile]) -> None:
    """
    Refuse to keep a checkpoint at a URL that is not where this job's checkpoints go: what we keep, we remove there later.

    Raises ValueError.
    """
    ours = {file.name: file.data for file in files if file.name.startswith(f"{DIRECTORY}/")}
    if not ours:
        return
    numbers = [number for name in ours if (number := number_of(name)) is not None]
    wanted, job = text(ad, "CheckpointDestination"), text(ad, "GlobalJobId")
    right = {place(wanted, job, number).encode() for number in numbers if wanted and job}
    if len(ours) != len(numbers) + 1 or len(numbers) != 1 or ours.get(WHERE) not in right:
        raise ValueError("the worker names a checkpoint that is not where the job's checkpoints go")


def destination(ad: Ad, name: str) -> PurePosixPath | None:
    """Where a file that the job left goes; None if nobody wants it. Raises ValueError for a name that leads elsewhere."""
    if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
        raise ValueError(f"the worker names an output file {name!r} outside of its sandbox")
    iwd = PurePosixPath(text(ad, "Iwd", "/")) / text(ad, "OutputDirectory")
    stream = {STDOUT: "Out", STDERR: "Err"}.get(name)
    if stream is None:
        return iwd / (remaps(text(ad, "TransferOutputRemaps")).find(name) or name)
    target = text(ad, stream, NULL)
    return None if target == NULL else iwd / target
