"""The events of an attempt: how it began, what was moved, and how it ended."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache

from kettle.userlog.event_to_ad import quoted
from kettle.userlog.events import Evicted, Executing, FileTransfer, Resource, Terminated
from kettle.userlog.routes import names_in
from kettle.userlog.usage import Allocation, cpu_times
from kettle_wire.ads.types import Expr, Scalar
from kettle_wire.attempts import Usage
from kettle_wire.codes import VacateCode
from kettle_wire.events import JobCompleted, JobVacated, Transfer
from kettle_wire.jobs import JobId


def executing(
    job: JobId, at: float, host: str, slot: str, allocation: Allocation, ad: Mapping[str, Scalar]
) -> Executing:
    """Its program runs; `allocation`: what it was given of the slot."""
    return Executing(
        job=job,
        at=at,
        host=host,
        slot=slot,
        attributes=written_attributes(
            [
                *((name, value) for name, value in allocation.attributes() if value is not None),
                *allocation.asked(names_in(ad.get("UserLogExecuteEventAttrs"))),
            ]
        ),
    )


def transfers(job: JobId, moved: Transfer | None, first: int, host: str) -> Iterator[FileTransfer]:
    """Files were moved on their own: queued, started, finished, each with its time."""
    if moved is None:
        return
    queued = round(moved.queued)
    yield FileTransfer(job=job, at=max(0.0, moved.began - moved.queued), kind=first)
    yield FileTransfer(job=job, at=moved.began, kind=first + 1, queued=queued, host=host)
    yield FileTransfer(job=job, at=moved.ended, kind=first + 2)


def evicted(
    job: JobId, at: float, why: tuple[int, int, str], event: JobVacated, resources: list[Resource]
) -> Evicted:
    """It ended without completing the job; `why`: code, subcode and reason."""
    code, subcode, reason = why
    return Evicted(
        job=job,
        at=at,
        code=code,
        subcode=subcode,
        requeued=event.exit if event.ending.code == VacateCode.JobShouldRequeue else None,
        remote=cpu_times(event.usage),
        sent=event.usage.sent,
        received=event.usage.received,
        reason=reason,
        resources=resources,
    )


def terminated(
    job: JobId, at: float, event: JobCompleted, total: Usage, resources: list[Resource]
) -> Terminated:
    """It completed the job; `total`: what all of its attempts have used."""
    ran = event.exit
    exited = _second(int(ran.at or at))
    how = f"signal {ran.signal}" if ran.signal is not None else f"exit-code {ran.code}"
    return Terminated(
        job=job,
        at=at,
        exit=ran,
        run_remote=cpu_times(event.usage),
        total_remote=cpu_times(total),
        sent=event.usage.sent,
        received=event.usage.received,
        total_sent=total.sent,
        total_received=total.received,
        resources=resources,
        ticket=f"Job terminated of its own accord at {exited} with {how}.",
    )


@lru_cache(maxsize=64)
def _second(at: int) -> str:
    """Many jobs end within one."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def written_attributes(said: Sequence[tuple[str, Scalar]]) -> list[tuple[str, str]]:
    """Names and expressions."""
    return [
        (name, quoted(value) if isinstance(value, str) else str(value).lower())
        for name, value in said
        if not isinstance(value, Expr)
    ]
