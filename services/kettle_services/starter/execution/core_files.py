"""
The memory of a program that a signal ended, as a file: as large as the job lets it be, and one of its results.
"""

import os
import re
import resource
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Mark, Sandbox
from kettle_wire.jobs import JobId

_NAME: Final = re.compile(r"core(\.[0-9]+)?")
"""The kernel's default name for it."""


@contextmanager
def cores_of(job: JobAd) -> Generator[None]:
    """
    What we start meanwhile leaves a file of CoreSize bytes at most; negative: as large as it is; not given: none.

    Nothing else that we start leaves one: neither hooks nor those that move files, nor those of the next job.
    """
    wanted = int(job.number("CoreSize") or 0)
    most = resource.getrlimit(resource.RLIMIT_CORE)[1]
    size = resource.RLIM_INFINITY if wanted < 0 else wanted
    if most != resource.RLIM_INFINITY:
        size = most if size == resource.RLIM_INFINITY else min(size, most)
    resource.setrlimit(resource.RLIMIT_CORE, (size, most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CORE, (0, most))


def take_core(sandbox: Sandbox, job: JobAd, before: dict[str, Mark], id_: JobId, status: int) -> str | None:
    """
    The name of the file in the sandbox, by which it comes back as a result; empty if it is not there; None: there was none.

    It gets the job's number in its name, as HTCondor's have. Raises OSError.
    """
    if not os.WCOREDUMP(status):
        return None
    found = [
        (mark, name) for name, mark in sandbox.files() if _NAME.fullmatch(name) and before.get(name) != mark
    ]
    if not found or not job.transfers:
        return ""
    name = f"core.{id_.cluster}.{id_.proc}"
    os.rename(f"{sandbox.path}/{max(found)[1]}", f"{sandbox.path}/{name}")  # noqa: PTH104 - strings
    if (listed := job.text("TransferOutput")) is not None:
        job.change({"TransferOutput": f"{listed},{name}" if listed else name})
    return name
