"""
What the attempts that ended have used, added up by a statement over the table `jobs.attempt`.

What an attempt had used up to a moment is a whole number of microseconds: its share by wall-clock time, rounded down. What
it has used in a slice is the difference of two of those, so slices that touch add up to the microsecond, and all of them
to the attempt.
"""

from collections.abc import Mapping
from typing import Final, TypeAlias

from kettle.projections.stored_projection import instant
from kettle.storage.database import Connection
from kettle_wire.commands.accounting import Axis, ReportedUsage, ReportUsage, UsageRow

MOST_ROWS: Final = 200_000
"""Of one answer: some 20 MB."""

_US: Final = 1_000_000
_COLUMNS: Final[Mapping[Axis, str]] = {
    "owner": 'owner COLLATE "C"',
    "group": 'acct_group COLLATE "C"',
    "project": 'project COLLATE "C"',
    "machine": 'machine COLLATE "C"',
    "job": "(cluster || '.' || proc || '@' || substr(shard, 8)) COLLATE \"C\"",  # shards are called schedd.NAME
    "time": "slice - 1",
}
_FILTERS: Final = (
    ("owner", "owners"),
    ("acct_group", "groups"),
    ("project", "projects"),
    ("machine", "machines"),
)

_Arguments: TypeAlias = list[object]


class TooManyRowsError(Exception):
    """The answer would be larger than anybody reads."""


async def report(connection: Connection, request: ReportUsage) -> ReportedUsage:
    """Add up. Raises TooManyRowsError."""
    text, arguments = statement(request)
    async with connection.transaction(readonly=True):
        # The plan is for this very span of time: most of the table is outside of it, or none.
        await connection.execute("SET LOCAL plan_cache_mode TO force_custom_plan")
        rows = await connection.fetch(text, *arguments)
    if len(rows) > MOST_ROWS:
        raise TooManyRowsError(
            f"the report has more than {MOST_ROWS:,} rows; name a shorter time, or owners, groups, projects or machines"
        )
    keys = len(request.by)
    return ReportedUsage(
        rows=[
            UsageRow(
                key=list(row[:keys]),
                jobs=row["jobs"],
                attempts=row["attempts"],
                wall=row["wall"],
                slot_time=row["slot_time"],
                good=row["good"],
                lost=row["slot_time"] - row["good"],
                cpu=row["cpu"],
                uncharged=row["uncharged"],
            )
            for row in rows
        ]
    )


def statement(request: ReportUsage) -> tuple[str, _Arguments]:
    """
    The query and its arguments. $1 are the moments; slice n is from the n-th of them up to the next, the first is 1.
    """
    cuts = [instant(round(at * _US)) for at in request.cuts]
    arguments: _Arguments = [cuts, cuts[0], cuts[-1]]
    conditions = ["a.begun_at < $3", "a.until_at >= $2"]
    for column, field in _FILTERS:
        if wanted := getattr(request, field):
            arguments.append(wanted)
            conditions.append(f"a.{column} = ANY (${len(arguments)}::text[])")
    keys = ", ".join(f"{_COLUMNS[axis]} AS k{number}" for number, axis in enumerate(request.by))
    order = ", ".join(str(number + 1) for number in range(len(request.by)))
    text = f"""
WITH part AS (
    SELECT a.*, slice, a.ended_at >= cut AND a.ended_at < next AS ends,
           {_microseconds("cut")} AS t0, {_microseconds("next")} AS t1
      FROM jobs.attempt a,
           generate_series(greatest(width_bucket(a.begun_at, $1::timestamptz[]), 1),
                           least(width_bucket(a.until_at, $1::timestamptz[]), {len(cuts) - 1})) AS slice,
           LATERAL (SELECT ($1::timestamptz[])[slice] AS cut, ($1::timestamptz[])[slice + 1] AS next) AS c
     WHERE {" AND ".join(conditions)}
), used AS (
    SELECT part.*, {_between("wall", "wall")} AS wall_in, {_between("slot_time", "wall")} AS slot_in,
           {_good()} AS good_in, {_between("cpu", "wall")} AS cpu_in, {_uncharged()} AS uncharged_in
      FROM part
)
SELECT {keys}, count(*) FILTER (WHERE ends AND completed) AS jobs, count(*) FILTER (WHERE ends) AS attempts,
       sum(wall_in)::bigint AS wall, sum(slot_in)::bigint AS slot_time, sum(good_in)::bigint AS good,
       sum(cpu_in)::bigint AS cpu, sum(uncharged_in)::bigint AS uncharged
  FROM used GROUP BY {order}
HAVING bool_or(ends) OR sum(wall_in) > 0 OR sum(slot_in) > 0 OR sum(cpu_in) > 0 OR sum(uncharged_in) > 0
 ORDER BY {order} LIMIT {MOST_ROWS + 1}"""  # noqa: S608 - values are arguments
    return text, arguments


def _microseconds(moment: str) -> str:
    """From the beginning of the attempt to a moment; not less than none."""
    return f"greatest(0, (extract(epoch FROM {moment} - a.begun_at) * 1000000)::bigint)"


def _upto(amount: str, length: str, time: str) -> str:
    """
    How much of an amount that is spread over a length has come by a time; all of it at once if there is no length.
    """
    part = f"div({amount}::numeric * least({time}, {length}), {length})"
    return f"CASE WHEN {time} = 0 THEN 0 WHEN {time} >= {length} THEN {amount} ELSE {part} END"


def _between(amount: str, length: str) -> str:
    return f"({_upto(amount, length, 't1')}) - ({_upto(amount, length, 't0')})"


def _good() -> str:
    """What is not lost of an attempt is its first part."""
    until = [_upto("slot_time", "wall", f"least({time}, good)") for time in ("t1", "t0")]
    return f"({until[0]}) - ({until[1]})"


def _uncharged() -> str:
    """No machine reported it, so it is counted after the measured time."""
    length = f"greatest(0, {_microseconds('until_at').replace('a.begun_at', 'begun_at')} - wall)"
    until = [_upto("uncharged", length, f"greatest(0, {time} - wall)") for time in ("t1", "t0")]
    return f"({until[0]}) - ({until[1]})"
