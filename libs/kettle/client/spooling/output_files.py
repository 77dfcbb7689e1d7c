"""Results of jobs on the machine of their submitter: where they go, and how they are written."""

import os
import re
import stat
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kettle.client.jobs.status import id_of
from kettle.client.spooling.input_files import SpoolingError
from kettle.transfer.file_lists import ManifestError, is_url
from kettle.transfer.spooled_jobs import PLACES, as_submitted
from kettle.transfer.submit_side_paths import destination
from kettle_wire.ads.types import Ad, Expr
from kettle_wire.codes import JobStatus
from kettle_wire.jobs import JobId

_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
_END: Final = "...\n"
_TERMINATED: Final = re.compile(r"^005 \(([0-9]+)\.([0-9]+)\.", re.MULTILINE)


def with_submitter_paths(ad: Ad) -> Ad:
    """The ad with the places that its submitter named; those that are expressions are evaluated."""
    ad = as_submitted(ad)
    if not any(isinstance(ad.get(name), Expr) for name in PLACES):
        return ad
    from kettle.classad import ClassAd, EvaluationFailed, evaluate_attribute

    whole, found = ClassAd.from_wire(ad), dict(ad)
    for name in (name for name in PLACES if isinstance(ad.get(name), Expr)):
        try:
            value = evaluate_attribute(name, whole)
        except EvaluationFailed as error:
            raise SpoolingError(f"{name} of the job cannot be evaluated: {error}") from error
        found.pop(name)
        if isinstance(value, str):
            found[name] = value
    return found


def output_path(ad: Ad, job: JobId, name: str) -> Path | None:
    """
    Where a result goes; None: it is not wanted here.  Raises SpoolingError for a name that leads elsewhere.
    """
    try:
        place = destination(ad, name)
    except (ManifestError, ValueError) as error:
        raise SpoolingError(f"result {name!r} of job {job}: {error}") from error
    return None if place is None or is_url(str(place)) else Path(place)


@contextmanager
def replacing(path: Path, job: JobId, mode: int) -> Generator[int]:
    """
    A descriptor of what takes a file's place when all has been written, and leaves nothing if it was not.  Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is not a regular file")
    draft = path.with_name(f".{path.name}.{job}.part")
    fd = os.open(draft, _DRAFT, mode & 0o777 | stat.S_IRUSR | stat.S_IWUSR)
    try:
        yield fd
        os.fsync(fd)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)


def one_of_each_log(ads: Iterable[Ad]) -> list[tuple[Ad, set[JobId]]]:
    """
    A job for each job event log that some of them have, and which of them have completed, so that their ends will be in it as
    text.
    """
    found: dict[str, tuple[Ad, set[JobId]]] = {}
    for ad in ads:
        if isinstance(log := ad.get("UserLog"), str):
            _, completed = found.setdefault(log, (ad, set()))
            if ad.get("JobStatus") == JobStatus.COMPLETED and ad.get("UserLogUseXML") is not True:
                completed.add(id_of(ad))
    return list(found.values())


def has_ends(log: str, jobs: Collection[JobId]) -> bool:
    """Whether a log has the events of the ends of all these jobs."""
    if not jobs:
        return True
    complete = log.rpartition(_END)[0]
    ended = {JobId(int(cluster), int(proc)) for cluster, proc in _TERMINATED.findall(complete)}
    return ended.issuperset(jobs)


def new_log_events(known: str, fetched: str) -> str:
    """
    The events of a log that another does not have yet; one that is being written is left for the next time.
    """
    there = {event.strip() for event in known.split(_END)}
    complete = fetched.split(_END)[:-1]
    return "".join(f"{event}{_END}" for event in complete if event.strip() not in there)
