"""
The job event logs of jobs that were just submitted: programs open them as soon as the submission has returned.

The access point appends to them after the submission is recorded, and a program that submits on its machine waits for that here.
"""

import time
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from kettle.client.connections.pool_file import PoolFile
    from kettle.submit import Submission

_PAUSES_S: Final = (0.005, 0.01, 0.02)
_LONGEST_S: Final = 0.05
_LOOKS: Final = 100
"""
After so many looks, which take five seconds, the submission returns without the event: a log that cannot be written is no reason
against the jobs. Looks are counted and not seconds, because a machine that is suspended for a while writes no log meanwhile.
"""

_LOG: Final = "UserLog"
_HERE: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_EVENT: Final = 512
"""Bytes of an event of a submission, at most, and usually."""
_MOST: Final = 8 << 20


def await_submit_events(submission: "Submission", cluster: int, pool: "PoolFile") -> None:
    """
    Return when each log of the jobs has the event that the last of its jobs was submitted.

    Blocks. Elsewhere than on the access point's machine, and for jobs that come into the queue by and by, it does nothing.
    """
    own = _LOG in submission.columns
    factory = {"JobMaterializeLimit", "JobMaterializeMaxIdle"}.intersection(submission.ad)
    if not (own or _LOG in submission.ad) or factory or not _is_here(pool):
        return
    procs = range(submission.count) if own else (submission.count - 1,)
    last = {str(path): proc for proc in procs if (path := submission.queued(proc, cluster).get(_LOG))}
    pauses = chain(_PAUSES_S, repeat(_LONGEST_S, _LOOKS))
    for path, proc in last.items():
        _await(Path(path), f"000 ({cluster:03}.{proc:03}.000)", _EVENT * submission.count, pauses)


def _is_here(pool: "PoolFile") -> bool:
    return all(urlsplit(url).hostname in _HERE for url in pool.nats_url.split(","))


def _await(path: Path, event: str, expected: int, pauses: Iterator[float]) -> None:
    """Look, and again after each of the pauses that are left."""
    while not _has(path, event, expected) and (pause := next(pauses, None)) is not None:
        time.sleep(pause)


def _has(path: Path, event: str, expected: int) -> bool:
    """Whether the end of a log has an event; in XML every event looks alike, and any will do."""
    try:
        with path.open("rb") as log:
            end = log.seek(0, 2)
            log.seek(max(0, end - min(_MOST, 64 * 1024 + expected)))
            content = log.read()
    except OSError:
        return False
    return event.encode() in content or content.lstrip()[:1] in {b"<", b"{"}
