"""Searches in the history: the same jobs as a look at every ad would find, by an index where there is one."""

import random
from collections.abc import Iterator

import pytest

from kettle.bus.ports import RefusedError
from kettle.classad import ClassAd, Context, evaluate, is_true, parse
from kettle.projections import Jobs, prepare
from kettle.storage.database import Connection
from kettle.testing.patience import PATIENCE_S
from kettle.testing.services import Backend, hosted, owned
from kettle_services.accounting.history_search import search, statement
from kettle_services.accounting.settings import AccountingSettings
from kettle_services.accounting.wiring import serve
from kettle_wire.ads.types import Ad, Expr, Scalar
from kettle_wire.attempts import ExitRecord
from kettle_wire.commands.accounting import QUERY_HISTORY, History, QueryHistory
from kettle_wire.endpoint import Position
from kettle_wire.events import (
    ClusterSubmitted,
    Event,
    JobAssigned,
    JobCompleted,
    JobRemoved,
    JobStarted,
    Usage,
)
from kettle_wire.identity import user
from kettle_wire.jobs import JobId

AT = 1_790_000_000_000_000
SHARD = "schedd.ap"
ROWS = 100_000
NAMES = ("Colour", "JobPrio", "Weight", "MemoryUsage", "My", "Owner")
VALUES: tuple[Scalar, ...] = (
    0, 1, -1, 7, 2**53, 2**53 + 1, 2**63 - 1, 0.0, 1.0, 0.1, 1e300, 7.5, True, False, "", "red", "Red", "ReD", "grün",
    "GRÜN", "x" * 300, Expr("1 + 6"), Expr("undefined"), Expr('"re" + "d"'), Expr("[Colour = 7; JobPrio = 1]"), Expr("ProcId"),
)  # fmt: skip
LITERALS = (
    "0", "1", "-1", "7", "9007199254740992", "9007199254740993", "9007199254740992.0", "0.1", "7.5", "1e300", "true",
    "false", '"red"', '"RED"', '"grün"', '"GRÜN"', f'"{"x" * 300}"', "undefined", "error", "3 + 4", "time() - time()",
)  # fmt: skip
ATTRIBUTES = (
    *NAMES, "ExitCode", "RemoteWallClockTime", "QDate", "CompletionDate", "ClusterId", "ProcId", "JobStatus", "NoSuch",
    "MY.Colour", "TARGET.Colour", "CurrentTime", "ExitSignal",
)  # fmt: skip


def settings(backend: Backend) -> AccountingSettings:
    return backend.settings(AccountingSettings, shard_poll=0.1, patience=PATIENCE_S)


def endings(proc: int) -> Iterator[tuple[str, Event]]:
    job = f"job/1.{proc}"
    if proc % 4:
        usage = Usage(wall=float(proc % 11), memory_kib=proc % 3 * 1024)
        signal = 9 if proc % 13 == 0 else None
        yield job, JobAssigned(attempt=1, claim="c", slot="s", startd="d")
        yield job, JobStarted(attempt=1)
        yield (
            job,
            JobCompleted(
                attempt=1, exit=ExitRecord(code=None if signal else proc % 3, signal=signal), usage=usage
            ),
        )
    else:
        yield job, JobRemoved()


async def recorded(backend: Backend, jobs: int, chance: random.Random) -> int:
    """Jobs with all kinds of attributes leave a queue, each in a second of its own; the last frame."""
    names = [name for name in NAMES if name != "Owner"]
    rows = [[chance.choice(VALUES) for _ in names] for _ in range(jobs)]
    async with owned(backend, SHARD) as ap:
        await ap.record(
            ("cluster/1", ClusterSubmitted(cluster=1, owner="alice", ad={}, columns=names, rows=rows)),
            at_us=AT,
        )
        frame = 0
        for proc in range(jobs):
            frame = await ap.record(*endings(proc), at_us=AT + proc * 1_000_000)
    return frame


def constraint(chance: random.Random, depth: int = 0) -> str:
    kind = chance.random()
    if depth < 3 and kind < 0.5:
        op = chance.choice(("&&", "||"))
        return f"({constraint(chance, depth + 1)} {op} {constraint(chance, depth + 1)})"
    if kind < 0.55:
        return f"!({constraint(chance, depth + 1)})" if depth < 3 else "Colour"
    sides = [chance.choice(ATTRIBUTES), chance.choice(LITERALS)]
    chance.shuffle(sides)
    op = chance.choice(("==", "!=", "<", "<=", ">", ">=", "=?=", "=!="))
    return f"{sides[0]} {op} {sides[1]}"


async def found(backend: Backend, **asked: object) -> History:
    request = QueryHistory(**asked)  # type: ignore[arg-type]
    expression = parse(request.constraint) if request.constraint else None
    return await backend.log.database.run(lambda c: search(c, request, expression, most_seconds=60.0))


def ids(ads: list[Ad]) -> list[str]:
    return [f"{ad['ClusterId']}.{ad['ProcId']}" for ad in ads]


async def test_a_search_finds_what_a_look_at_every_ad_finds(backend: Backend) -> None:
    """
    Whatever the values (large integers, reals, booleans, text in any case, expressions) and whatever is asked of them.
    """
    chance = random.Random(4)
    last = await recorded(backend, 250, chance)
    await prepare(Jobs(), backend.log.database, [backend.log])
    everything = (await found(backend, limit=0)).jobs
    assert 250 == len(everything) == last - 1
    hits = pruned = 0
    for _ in range(400):
        text = constraint(chance)
        expression = parse(text)
        context = Context(now=lambda: AT // 1_000_000)  # no constraint here cares which time it is
        expected = [
            ad for ad in everything if is_true(evaluate(expression, ClassAd.from_wire(ad), None, context))
        ]
        answer = await found(backend, constraint=text, limit=0)
        assert (text, ids(expected)) == (text, ids(answer.jobs))
        hits += bool(expected)
        pruned += answer.examined < len(everything)
    assert hits > 100, "the constraints are no test"
    assert pruned > 50, "the tables told nothing"


async def test_ads_come_back_as_they_were(backend: Backend) -> None:
    """Integers beyond 2^53, reals, text and expressions of an ad survive to the last bit."""
    rows = [[value] for value in VALUES]
    async with owned(backend, SHARD) as ap:
        event = ClusterSubmitted(cluster=1, owner="alice", ad={}, columns=["Colour"], rows=rows)
        await ap.record(("cluster/1", event), at_us=AT)
        removed: list[tuple[str, Event]] = [(f"job/1.{proc}", JobRemoved()) for proc in range(len(rows))]
        await ap.record(*removed, at_us=AT)
    await prepare(Jobs(), backend.log.database, [backend.log])
    jobs = (await found(backend, limit=0)).jobs
    assert [repr(value) for value in VALUES] == [repr(ad["Colour"]) for ad in reversed(jobs)]


async def test_pages_and_spans(backend: Backend) -> None:
    """
    Pages follow on each other without a gap or a double, and a span of time has its first moment and not its last.
    """
    last = await recorded(backend, 30, random.Random(1))
    async with hosted("accounting", settings(backend), serve), backend.bus(user("test")) as bus:

        async def ask(**asked: object) -> History:
            return await bus.call(
                QUERY_HISTORY,
                "accounting",
                QueryHistory(at_least=Position(SHARD, last), **asked),  # type: ignore[arg-type]
            )

        everything = ids((await ask(limit=0)).jobs)
        assert [f"1.{proc}" for proc in reversed(range(30))] == everything
        for asked in ({}, {"clusters": [1], "owners": ["alice"]}, {"constraint": "ProcId >= 0"}):
            seen: list[str] = []
            after = None
            while len(seen) < 30:
                answer = await ask(limit=7, after=after, **asked)
                seen += ids(answer.jobs)
                after = answer.more
            assert everything == seen
        at = AT / 1_000_000
        assert ["1.4", "1.3"] == ids((await ask(since=at + 3, until=at + 5)).jobs)
        assert ["1.9", "1.4"] == ids(
            (await ask(jobs=[JobId(1, 4), JobId(1, 9), JobId(2, 0)], until=at + 10)).jobs
        )
        assert ["1.2"] == ids((await ask(clusters=[1, 5], constraint='ProcId == 2 && Owner == "ALICE"')).jobs)
        with pytest.raises(RefusedError, match="the constraint 'a ==' cannot be read") as refused:
            await ask(constraint="a ==")
        assert "malformed" == refused.value.code


async def test_an_answer_has_a_bound(backend: Backend) -> None:
    """A search whose time is over answers what it has, and where to go on."""
    await recorded(backend, 150, random.Random(1))
    await prepare(Jobs(), backend.log.database, [backend.log])
    request = QueryHistory(constraint="ProcId + 0 == 10", limit=0)
    first = await backend.log.database.run(
        lambda c: search(c, request, parse(request.constraint), most_seconds=0.0)
    )
    assert ([], 100) == (first.jobs, first.examined)
    assert first.more is not None
    second = await found(backend, constraint=request.constraint, limit=0, after=first.more)
    assert (["1.10"], 50, None) == (ids(second.jobs), second.examined, second.more)


FILL = """
INSERT INTO jobs.history
SELECT 'schedd.ap', i / 10, i % 10, 'user' || i % 500, 4, to_timestamp(1790000000 + i), to_timestamp(1790000000 + i), i,
       CASE WHEN i % 1000 = 0 THEN 1 ELSE 0 END, i % 10000, i % 5000, 1790000000 + i, 1790000000 + i, 1790000000 + i,
       jsonb_build_object('jobprio', i % 2000, 'jobbatchname', 'sweep ' || i % 3000, 'requestcpus', 1, 'owner', 'u'), ''
  FROM generate_series(1, $1::integer) AS i
"""


async def test_searches_use_an_index(backend: Backend) -> None:
    """With many jobs in the history, every kind of search finds its own by an index."""
    await prepare(Jobs(), backend.log.database, [backend.log])
    asked = {
        "": "history_newest",
        "ExitCode != 0": "history_failed",
        "ExitCode != 0 && RemoteWallClockTime > 9990": "history_failed",
        "ExitCode == 1 && NumJobStarts > 3": "history_failed",
        "RemoteWallClockTime >= 9998.5": "history_wall_time",
        "MemoryUsage > 4998 && Cmd == 5": "history_memory",
        "QDate < 1790000050": "history_queued",
        "CompletionDate > 1790099950": "history_completed",
        "JobStartDate > 1790099950": "history_started",
        'JobBatchName == "Sweep 7"': "history_search",
        "JobPrio == 5 || JobPrio == 6": "history_search",
        "ClusterId == 77": "history_cluster",
    }

    async def plans(connection: Connection) -> dict[str, str]:
        await connection.execute(FILL, ROWS)
        await connection.execute("VACUUM ANALYZE jobs.history")
        found: dict[str, str] = {}
        async with connection.transaction():
            await connection.execute("SET LOCAL plan_cache_mode TO force_custom_plan")
            for text in asked:
                query = statement(QueryHistory(constraint=text), parse(text) if text else None, Context())
                rows = await connection.fetch(f"EXPLAIN {query.text}", *query.arguments)
                found[text] = "\n".join(row[0] for row in rows)
            request = QueryHistory(jobs=[JobId(5, 1)], clusters=[7], owners=["user3"])
            query = statement(request, None, Context())
            rows = await connection.fetch(f"EXPLAIN {query.text}", *query.arguments)
            found["named"] = "\n".join(row[0] for row in rows)
        return found

    for text, plan in (await backend.log.database.run(plans)).items():
        assert asked.get(text, "history_owner") in plan, f"{text}\n{plan}"
        assert "Seq Scan" not in plan, f"{text}\n{plan}"
