"""
A record of a job's sandbox, for those who want to know what there was: what lay in it before and after, and the variables.

It is one of the results: the files `in`, `out` and `environment` in a directory of their own, as the job's account writes them.
"""

import os
import posixpath
from collections.abc import Iterator, Mapping
from typing import Final

from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox, acting_as
from kettle.transfer.file_lists import leaves

FILES: Final = ("in", "environment", "out")
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


def place_of(job: JobAd) -> str | None:
    """
    The directory in the sandbox (ManifestDir, else by the number of the job); None: the job wants no record.
    """
    named = job.text("ManifestDir")
    if not job.transfers or not (named or job.flag("ManifestDesired", default=False)):
        return None
    if named and not leaves(named):
        return posixpath.normpath(named)
    return f"{int(job.number('ClusterId') or 0)}_{int(job.number('ProcId') or 0)}_manifest"


def write_before(sandbox: Sandbox, job: JobAd, environment: Mapping[str, str]) -> None:
    """
    What there is before the program runs; when it runs again after a checkpoint, nothing is added.  Raises OSError.
    """
    place = place_of(job)
    if place is None or os.path.lexists(f"{sandbox.path}/{place}"):
        return
    with acting_as(sandbox.account):
        listed = _listed(sandbox.path)
        os.makedirs(f"{sandbox.path}/{place}")  # noqa: PTH103 - strings
        _write(f"{sandbox.path}/{place}/in", listed)
        variables = (f"{name}={value}\n" for name, value in sorted(environment.items()))
        _write(f"{sandbox.path}/{place}/environment", "".join(variables))


def write_after(sandbox: Sandbox, job: JobAd) -> Iterator[tuple[str, str]]:
    """
    What there is afterwards; (path, name) of each file of the record.  Called with the rights of the job.
    """
    place = place_of(job)
    if place is None or not os.path.isdir(f"{sandbox.path}/{place}"):  # noqa: PTH112 - strings
        return
    _write(f"{sandbox.path}/{place}/out", _listed(sandbox.path))
    for name in FILES:
        yield f"{sandbox.path}/{place}/{name}", f"{place}/{name}"


def _listed(path: str) -> str:
    """
    Everything below a directory by its name, directories with a slash at their end, as HTCondor lists them.
    """
    names = [
        f"./{posixpath.relpath(posixpath.join(directory, name), path)}{mark}\n"
        for directory, branches, files in os.walk(path)
        for mark, some in (("/", branches), ("", files))
        for name in some
    ]
    return "".join(sorted(names))


def _write(path: str, text: str) -> None:
    fd = os.open(path, _NEW, 0o644)
    with os.fdopen(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
        file.write(text)
