"""What is asked about runs of jobs that have ended: from the tables."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Final

import asyncpg
import msgspec

from kettle.projections.stored_projection import instant, microseconds
from kettle_services.gateway.rest.application import Answer, Asked
from kettle_services.gateway.rest.failures import words_of_code
from kettle_services.gateway.rest.job_rows import SCHEDD
from kettle_services.gateway.rest.job_tables import QUERIES, JobTables, frames_tag
from kettle_services.gateway.rest.jobs import job_name
from kettle_services.gateway.rest.page_tokens import page_token, place_of
from kettle_wire.jobs import Name, Number
from kettle_wire.rest.attempts import Attempt, Attempts, ListAttempts

_WEEK: Final = timedelta(days=7)
_MICRO: Final = 1_000_000


class AttemptPlace(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The place of a run in a list: when it was over, and which it is."""

    until: Annotated[int, msgspec.Meta(ge=0, le=4_000_000_000_000_000)]
    """Microseconds since the epoch."""
    shard: Name
    cluster: Number
    proc: Number
    attempt: Number


class AttemptQuestions:
    """Answers them."""

    def __init__(self, tables: JobTables) -> None:
        self._tables = tables

    async def list(self, asked: Asked) -> Answer:
        """Runs, the last ones first."""
        parameters: ListAttempts = asked.parameters
        after = place_of(parameters, parameters.page, AttemptPlace) if parameters.page else None
        since = parameters.since
        job, schedd = (None, "") if parameters.job is None else job_name(parameters.job)
        if since is None and job is None:
            since = (parameters.until or datetime.now(UTC)) - _WEEK
        async with self._tables.read() as reading:
            frames = await reading.frames()
            asked.require_changed(frames_tag(frames))
            rows = await reading.fetch(
                QUERIES["attempts"],
                since,
                parameters.until,
                parameters.machine,
                parameters.owner,
                parameters.project,
                job.cluster if job else None,
                job.proc if job else None,
                SCHEDD + schedd if schedd else None,
                instant(after.until) if after else None,
                after.shard if after else None,
                after.cluster if after else None,
                after.proc if after else None,
                after.attempt if after else None,
                parameters.limit + 1,
            )
        shown = rows[: parameters.limit]
        following = page_token(parameters, _place(shown[-1])) if len(rows) > len(shown) else None
        answer = Attempts(attempts=[_attempt(row) for row in shown], next=following, frames=frames)
        return Answer(answer, frames_tag(frames))


def _place(row: asyncpg.Record) -> AttemptPlace:
    return AttemptPlace(
        microseconds(row["until_at"]), row["shard"], row["cluster"], row["proc"], row["attempt"]
    )


def _attempt(row: asyncpg.Record) -> Attempt:
    code = row["code"]
    return Attempt(
        job=f"{row['cluster']}.{row['proc']}@{row['shard'].removeprefix(SCHEDD)}",
        attempt=row["attempt"],
        owner=row["owner"],
        machine=row["machine"],
        slot=row["slot"],
        begun=row["begun_at"],
        ended=row["ended_at"],
        wall=row["wall"] / _MICRO,
        cpu=row["cpu"] / _MICRO,
        completed=row["completed"],
        code=code,
        said=words_of_code(code) if code else "its program ended",
    )
