"""What goes wrong, grouped by its cause: from the tables."""

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from signal import Signals
from typing import Final

import asyncpg

from kettle.jobs.submitted_on_hold import REASON
from kettle.schema_generation.field_descriptions import meanings
from kettle.transfer.spooled_jobs import HELD_FOR
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.job_rows import SCHEDD
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables, frames_tag
from kettle_services.gateway.rest.refusals import refused_field
from kettle_wire.codes import HoldCode, VacateCode
from kettle_wire.rest.failures import Failure, FailureKind, Failures, ListFailures

_WEEK: Final = timedelta(days=7)
_WANTED: Final = [
    int(code)
    for code in (
        VacateCode.JobRemoved,
        VacateCode.UserVacateJob,
        VacateCode.JobShouldRequeue,
        VacateCode.SuccessfulCheckpoint,
    )
]
"""Ends of attempts that somebody, or the job itself, wanted."""
_MEANT: Final = [REASON, HELD_FOR]
"""Reasons of holds that submitters wanted, or that end by themselves."""
_PARTICULAR: Final = re.compile(r"'[^']*'|\"[^\"]*\"|(?<![\w/])/[^\s:;,'\"]+|\d+(?:\.\d+)*")
"""What distinguishes one hold reason from another of the same cause: quoted text, paths and numbers."""
_QUERIES: Final[tuple[tuple[FailureKind, str], ...]] = (
    ("exit", "failed_exits"),
    ("signal", "failed_signals"),
    ("attempt", "failed_attempts"),
)


class FailureQuestions:
    """Answers them."""

    def __init__(self, tables: JobTables) -> None:
        self._tables = tables

    async def list(self, asked: Asked) -> Answer:
        """Causes, the most frequent first."""
        parameters: ListFailures = asked.parameters
        until = parameters.until or datetime.now(UTC)
        since = parameters.since or until - _WEEK
        if since >= until:
            raise refused_field("/query/since", "the parameter since has to be before until")
        arguments = (since, until, parameters.owner, [SCHEDD + name for name in parameters.schedd])
        found: list[Failure] = []
        async with self._tables.read() as reading:
            frames = await reading.frames()
            # A span that ends now is another one with every request.
            etag = frames_tag(frames) if parameters.since and parameters.until else ""
            if etag:
                asked.require_changed(etag)
            if not parameters.kind or "held" in parameters.kind:
                found += _held(await reading.fetch(QUERIES["held_now"], *arguments, _MEANT))
            for kind, query in _QUERIES:
                if not parameters.kind or kind in parameters.kind:
                    more = (_WANTED,) if kind == "attempt" else ()
                    rows = await reading.fetch(QUERIES[query], *arguments, *more)
                    found += [_failure(kind, row) for row in rows]
        found.sort(key=lambda one: (-one.count, one.kind, one.cause))
        answer = Failures(
            since=since,
            until=until,
            failures=found[: parameters.limit],
            more=max(0, len(found) - parameters.limit),
            frames=frames,
        )
        return Answer(answer, etag)


def cause_of(reason: str) -> str:
    """A hold reason without what distinguishes it from others of the same cause."""
    return _PARTICULAR.sub("…", reason)


def _held(rows: Sequence[asyncpg.Record]) -> Iterator[Failure]:
    """Jobs that are held, by the cause of it."""
    together: dict[str, list[asyncpg.Record]] = {}
    for row in rows:
        together.setdefault(cause_of(row["hold_reason"] or "no reason was given"), []).append(row)
    for cause, same in together.items():
        last = max(same, key=lambda row: (row["last"], row["example"]))
        yield Failure(
            kind="held",
            cause=cause,
            count=sum(row["count"] for row in same),
            owners=len({owner for row in same for owner in row["owners"]}),
            first=min(row["first"] for row in same),
            last=last["last"],
            example=_job(last["example"]),
            said=last["hold_reason"] or "",
        )


def _failure(kind: FailureKind, row: asyncpg.Record) -> Failure:
    code = row["code"]
    match kind:
        case "exit":
            cause = f"exit code {code}"
        case "signal":
            cause = words_of_signal(code)
        case _:
            cause = words_of_code(code)
    return Failure(
        kind=kind,
        cause=cause,
        code=code,
        count=row["count"],
        owners=row["owners"],
        first=row["first"],
        last=row["last"],
        example=_job(row["example"]),
        said=cause,
        machines=row["machines"] if kind == "attempt" else 0,
    )


def words_of_signal(number: int | None) -> str:
    """By which signal a job was ended; None: nobody knows."""
    if number is None:
        return "a signal"
    try:
        return f"signal {number} ({Signals(number).name})"
    except ValueError:
        return f"signal {number}"


def words_of_code(code: int) -> str:
    """Why an attempt ended early, in words."""
    for codes in (VacateCode, HoldCode):
        if code in codes.__members__.values():
            member = codes(code)
            return _MEANINGS[codes][member.name].rstrip(".").partition("; ")[0]
    return f"code {code}"


_MEANINGS: Final = {codes: meanings(codes) for codes in (VacateCode, HoldCode)}


def _job(example: str) -> str:
    """`CLUSTER.PROC@SHARD` as a job is named."""
    return example.replace(f"@{SCHEDD}", "@", 1)
