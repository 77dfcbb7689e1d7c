"""Which lists of files a job may have."""

from collections.abc import Iterable

from kettle.classad import NOTHING, ClassAd, EvaluationFailed, evaluate_attribute
from kettle.transfer.checkpoint_manifest import DIRECTORY, WHERE, CheckpointError, number_of, place, refuse
from kettle.transfer.file_lists import ManifestError, is_url, items, job_plugins, leaves, name_of_url, remaps
from kettle.transfer.submit_side_paths import excluded, listed, text
from kettle_wire.ads import Ad
from kettle_wire.worker_reports import OutputFile


def check_inputs(ad: Ad) -> None:
    """
    Refuse lists that make no sense before a machine works for them.

    Raises ManifestError.
    """
    for item in listed(ad):
        if is_url(item):
            name_of_url(item)
    job_plugins(text(ad, "TransferPlugins"))
    excluded(ad)


def check_outputs(ad: Ad) -> None:
    """Check the files that come back.  Raises ManifestError."""
    remaps(text(ad, "TransferOutputRemaps"))
    for item in items(text(ad, "TransferOutput")):
        if leaves(item):
            raise ManifestError(f"the output file {item} leads out of the sandbox")
    if checkpoints := text(ad, "CheckpointDestination"):
        try:
            refuse(checkpoints)
        except CheckpointError as error:
            raise ManifestError(str(error)) from error


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
    """Whether a job that is removed, held or vacated is given time to end (WantGracefulRemoval)."""
    try:
        value = evaluate_attribute("WantGracefulRemoval", ClassAd.from_wire(ad), None, NOTHING)
    except EvaluationFailed:
        return default
    return value != 0 if isinstance(value, bool | int | float) else default


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
