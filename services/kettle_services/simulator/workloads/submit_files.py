"""Submit files as workloads: what their jobs ask for, with run times that are given."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import numpy as np

from kettle.classad import ClassAd, evaluate_attribute
from kettle.submit import Site, Submission, SubmitError, expand_clusters, parse
from kettle.submit.expansion import queues_of_clusters
from kettle_services.simulator.workloads.distributions import Distribution, Randomness
from kettle_services.simulator.workloads.job_kinds import JobKind
from kettle_services.simulator.workloads.workflows import ONCE, WorkflowError
from kettle_services.simulator.workloads.workload import Column, Workload
from kettle_wire.ads import Ad, Expr

_US: Final = 1e6
_SITE: Final = Site(arch="X86_64", opsys="LINUX", file_system_domain="simulated", check_files=False)
"""Where they are submitted: the same on every machine on which they are simulated."""
_AUTOMATIC: Final = {"ARCH": _SITE.arch, "OPSYS": _SITE.opsys}


def read_submit(
    path: Path,
    *,
    duration: Distribution,
    at: Column = ONCE,
    seed: int = 0,
    user: str = "user",
    grid: bool = False,
) -> Workload:
    """
    The jobs of a submit file, each with a duration (seconds) that is drawn; those of an accounting group are that one's.

    Requirements and rank are looked at if the file has them; the files that it names need not be there. Nothing is run: a file that
    has a program print a part of it cannot be submitted here.
    It is submitted at each of the times of `at`, in microseconds.

    Raises:
        WorkflowError: it cannot be submitted.
        OSError: it cannot be read.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        description = parse(
            text,
            source=str(path),
            cwd=path.parent,
            environ={},
            automatic=_AUTOMATIC,
            entropy=random.Random(f"{seed} submit"),  # noqa: S311 - the same file, the same jobs
            programs=False,
        )
        submissions = expand_clusters(description, _SITE)
    except SubmitError as error:
        raise WorkflowError(str(error)) from error
    kinds: dict[JobKind, int] = {}
    users: dict[str, int] = {}
    rows: list[tuple[int, int, int, int, int]] = []
    for submission, queues in zip(submissions, queues_of_clusters(description), strict=True):
        said = frozenset(name for queue in queues for name in queue.assignments)
        for ad in _ads(submission):
            kind = kinds.setdefault(_kind(ad, said), len(kinds))
            owner = users.setdefault(_owner(ad, user), len(users))
            asked = (_whole(path, ad, name) for name in ("RequestCpus", "RequestMemory", "JobPrio"))
            rows.append((*asked, owner, kind))  # type: ignore[arg-type]
    cores, memory, priority, owners, sorts = zip(*rows, strict=True)
    work = duration.draw(Randomness(seed, "durations"), len(rows) * len(at)) * _US
    return Workload(
        submitted=np.zeros(len(rows), dtype=np.int64),
        work=0,
        cores=cores,
        memory=memory,
        priority=priority,
        user=owners,
        users=tuple(users),
        kind=sorts,
        kinds=tuple(kinds),
        grid=grid,
    ).repeated(at, np.rint(work))


def _ads(submission: Submission) -> Iterator[Ad]:
    return (submission.job(proc) for proc in range(submission.count))


def _owner(ad: Ad, user: str) -> str:
    """As `group.name`, if it is for a group."""
    group, name = ad.get("AcctGroup"), ad.get("AcctGroupUser", user)
    return f"{group}.{name}" if isinstance(group, str) else str(name)


def _kind(ad: Ad, said: frozenset[str]) -> JobKind:
    limits = ad.get("ConcurrencyLimits")
    return JobKind(
        requirements=_text(ad.get("Requirements")) if "requirements" in said else "",
        rank=_text(ad.get("Rank")) if "rank" in said else "",
        concurrency_limits=limits if isinstance(limits, str) else "",
    )


def _text(value: object) -> str:
    return value.expr if isinstance(value, Expr) else "" if value is None else str(value)


def _whole(path: Path, ad: Ad, name: str) -> int:
    value: object = ad.get(name, 0)
    if isinstance(value, Expr):
        value = evaluate_attribute(name, ClassAd.from_wire(ad))
    if not isinstance(value, int | float):
        raise WorkflowError(f"{path}: {name} of a job that has not run yet is no number: {_text(ad[name])}")
    return int(value)
