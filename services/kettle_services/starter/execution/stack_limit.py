"""How large the stack of a program may become."""

import resource
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from kettle.execution.job_environment.job_ad import JobAd

_LEAST: Final = 1 << 20
"""Bytes: it is our own limit, too, until the program is there."""


@contextmanager
def stack_of(job: JobAd) -> Generator[None]:
    """
    What we start meanwhile may have StackSize bytes of it, if the job says so, within what this machine allows at all.
    """
    wanted = job.number("StackSize")
    if wanted is None:
        yield
        return
    usual, most = resource.getrlimit(resource.RLIMIT_STACK)
    size = max(int(wanted), _LEAST)
    resource.setrlimit(
        resource.RLIMIT_STACK, (size if most == resource.RLIM_INFINITY else min(size, most), most)
    )
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_STACK, (usual, most))
