"""Reports of usage are the sum of the attempts, whatever they are by and wherever time is cut."""

import re
from collections import defaultdict
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kettle.bus.ports import RefusedError
from kettle.projections import PROJECTIONS, prepare, rebuild
from kettle.projections.jobs import rows
from kettle.projections.stored_projection import instant
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, hosted, owned
from kettle_services.accounting.settings import AccountingSettings
from kettle_services.accounting.usage_reports import report
from kettle_services.accounting.wiring import serve
from kettle_wire.attempts import Ending, ExitRecord
from kettle_wire.commands.accounting import REPORT_USAGE, Axis, ReportUsage, UsageRow
from kettle_wire.endpoint import Position
from kettle_wire.events import ClusterSubmitted, JobAssigned, JobCompleted, JobVacated, Usage
from kettle_wire.identity import user

AT = 1_790_000_000_000_000
H = 3_600_000_000
NAMES: dict[Axis, str] = {
    "owner": "owner",
    "group": "acct_group",
    "project": "project",
    "machine": "machine",
    "job": "job",
}
AMOUNTS = ("jobs", "attempts", "wall", "slot_time", "good", "lost", "cpu", "uncharged")

Row = dict[str, Any]


def moments(*cuts: int) -> list[float]:
    return [(AT + cut) / 1e6 for cut in cuts]


def pieces(amount: int, length: int) -> list[int]:
    """
    How an amount is spread over a length, microsecond by microsecond; all in the first if there is no length.
    """
    if length == 0:
        return [amount]
    return [amount * (i + 1) // length - amount * i // length for i in range(length)]


def brute(attempts: list[Row], request: ReportUsage) -> dict[tuple[str | int, ...], dict[str, int]]:
    """Every microsecond of every attempt is put where it belongs."""
    cuts = [round(at * 1e6) - AT for at in request.cuts]
    found: dict[tuple[str | int, ...], dict[str, int]] = defaultdict(lambda: dict.fromkeys(AMOUNTS, 0))

    def put(attempt: Row, at: int, amount: str, number: int) -> None:
        piece = next((n for n, (a, b) in enumerate(pairwise(cuts)) if a <= at < b), None)
        if piece is not None and number:
            key = tuple(piece if axis == "time" else attempt[NAMES[axis]] for axis in request.by)
            found[key][amount] += number

    for one in attempts:
        begun, wall, ended = one["begun"], one["wall"], one["ended"]
        put(one, ended, "attempts", 1)
        put(one, ended, "jobs", int(one["completed"]))
        for amount in ("wall", "slot_time", "cpu"):
            for i, part in enumerate(pieces(one[amount], wall)):
                put(one, begun + i, amount, part)
                if amount == "slot_time":
                    put(one, begun + i, "good" if i < one["good"] else "lost", part)
        for i, part in enumerate(pieces(one["uncharged"], max(0, ended - begun - wall))):
            put(one, begun + wall + i, "uncharged", part)
    return found


@st.composite
def attempt(draw: st.DrawFn) -> Row:
    begun, wall = draw(st.integers(0, 60)), draw(st.integers(0, 40))
    ended = begun + draw(st.integers(0, 60))
    completed = draw(st.booleans())
    return {
        "owner": draw(st.sampled_from(["ada", "bob"])),
        "acct_group": draw(st.sampled_from(["", "phys", "Phys"])),
        "project": draw(st.sampled_from(["", "tau"])),
        "machine": draw(st.sampled_from(["ep1", "ep2"])),
        "begun": begun,
        "ended": ended,
        "wall": wall,
        "slot_time": wall * draw(st.integers(0, 5)),
        "cpu": draw(st.integers(0, 200)) if wall else 0,
        "good": wall if completed else draw(st.integers(0, wall)),
        "uncharged": max(0, ended - begun - wall) * draw(st.integers(1, 3)),
        "completed": completed,
    }


@st.composite
def request(draw: st.DrawFn) -> ReportUsage:
    axes: list[Axis] = [*NAMES, "time"]
    return ReportUsage(
        by=draw(st.lists(st.sampled_from(axes), min_size=1, max_size=2, unique=True)),
        cuts=moments(*sorted(draw(st.sets(st.integers(-5, 130), min_size=2, max_size=7)))),
        owners=draw(st.sampled_from([["ada"], ["nobody", "bob"], list[str]()])),
    )


def stored(number: int, one: Row) -> tuple[object, ...]:
    begun, ended = AT + one["begun"], AT + one["ended"]
    return (
        "schedd.ap", 1, number, 1, one["owner"], one["acct_group"], one["project"], one["machine"], "slot1",
        instant(begun), instant(ended), instant(max(ended, begun + one["wall"])), one["wall"], one["slot_time"],
        one["cpu"], one["good"], one["uncharged"], one["completed"], 0, 1,
    )  # fmt: skip


def figures(row: UsageRow) -> dict[str, int]:
    return {amount: getattr(row, amount) for amount in AMOUNTS}


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(attempts=st.lists(attempt(), max_size=8), request_=request())
async def test_a_report_is_the_sum_of_all_moments(
    backend: Backend, attempts: list[Row], request_: ReportUsage
) -> None:
    """
    For any attempts, any one or two axes and any cuts of time; and slices that touch add up to the whole of them.
    """
    database = backend.log.database
    await prepare(PROJECTIONS["jobs"](), database, [backend.log])
    attempts = [one | {"job": f"1.{number}@ap"} for number, one in enumerate(attempts)]
    records = [stored(number, one) for number, one in enumerate(attempts)]
    whole = msgspec.structs.replace(request_, cuts=[request_.cuts[0], request_.cuts[-1]])
    async with database.connection() as connection:
        await connection.execute("TRUNCATE jobs.attempt")
        await connection.copy_records_to_table(
            "attempt", schema_name="jobs", records=records, columns=["shard", *rows.ATTEMPT]
        )
        answer = (await report(connection, request_)).rows
        once = (await report(connection, whole)).rows
    wanted = [one for one in attempts if not request_.owners or one["owner"] in request_.owners]
    assert brute(wanted, request_) == {tuple(row.key): figures(row) for row in answer}
    assert sorted(tuple(row.key) for row in answer) == [tuple(row.key) for row in answer]
    for amount in AMOUNTS:
        assert sum(getattr(row, amount) for row in answer) == sum(getattr(row, amount) for row in once)


def submitted(cluster: int, owner: str, cpus: int, **ad: str) -> tuple[str, ClusterSubmitted]:
    event = ClusterSubmitted(
        cluster=cluster, owner=owner, ad={"RequestCpus": cpus, **ad}, columns=[], rows=[[]]
    )
    return f"cluster/{cluster}", event


async def test_worked_figures(backend: Backend) -> None:
    """
    Ada's job is evicted after an hour, runs again for two, and its end is recorded a quarter of an hour later.

    It has 2 cores, and midnight is 30 minutes after its second beginning, which is half an hour after the eviction:

        first day    1 h + 0.5 h of wall, 2 + 1 core hours, of these 2 lost; 1 attempt
        second day   1.5 h of wall, 3 core hours, all good, and 0.25 * 2 uncharged; 1 attempt, 1 job

    It worked on one core for all of the 2 hours: 0.5 and 1.5 hours of CPU. The same after a rebuild from the log.
    """
    async with owned(backend, "schedd.ap") as ap, backend.bus(user("test")) as bus:
        job = "job/1.0"
        lost = JobVacated(attempt=1, ending=Ending(code=1004, reason="v"), usage=Usage(wall=3600.0))
        done = JobCompleted(attempt=2, exit=ExitRecord(code=0), usage=Usage(wall=7200.0, user_cpu=7200.0))
        place: dict[str, Any] = {"claim": "c", "slot": "s@ep", "startd": "ep"}
        await ap.record(submitted(1, "ada", 2, AcctGroup="phys", ProjectName="tau"), at_us=AT)
        await ap.record((job, JobAssigned(attempt=1, **place)), at_us=AT)
        await ap.record((job, lost), at_us=AT + H)
        await ap.record((job, JobAssigned(attempt=2, **place)), at_us=AT + 3 * H // 2)
        last = await ap.record((job, done), at_us=AT + 15 * H // 4)
        configured = backend.settings(AccountingSettings, shard_poll=0.1, patience=6.0)
        async with hosted("accounting", configured, serve):
            wanted = ReportUsage(
                by=["project", "time"],
                cuts=moments(-22 * H, 2 * H, 26 * H),
                at_least=Position("schedd.ap", last),
            )
            answer = (await bus.call(REPORT_USAGE, "accounting", wanted)).rows
            assert [
                UsageRow(
                    key=["tau", 0], jobs=0, attempts=1, wall=3 * H // 2, slot_time=3 * H, good=H, lost=2 * H, cpu=H // 2
                ),
                UsageRow(
                    key=["tau", 1], jobs=1, attempts=1, wall=3 * H // 2, slot_time=3 * H, good=3 * H, cpu=3 * H // 2,
                    uncharged=H // 2,
                ),
            ] == answer  # fmt: skip
            await rebuild(PROJECTIONS["jobs"](), backend.log.database, [backend.log])
            assert answer == (await bus.call(REPORT_USAGE, "accounting", wanted)).rows
            for refused, why in (
                (msgspec.structs.replace(wanted, cuts=moments(5, 5)), "is not after the one before"),
                (msgspec.structs.replace(wanted, by=["owner", "owner"]), "by owner and owner"),
                (msgspec.structs.replace(wanted, at_least=Position("schedd.ap", 99)), "not yet 99"),
            ):
                with pytest.raises(RefusedError, match=re.escape(why)):
                    await bus.call(REPORT_USAGE, "accounting", refused, deadline=PATIENCE_S)
