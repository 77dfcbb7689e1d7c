"""
Makes a recording: a pool in which everything happens that is ever recorded, and what its log held afterwards.

    .venv/bin/python -m tests.replay.record 0.2.0      a pool is started, and its log becomes tests/replay/0.2.0
    .venv/bin/python -m tests.replay.record --refold   only what the recordings come to, after a change of the folds

A recording that is kept is never made again: a later version is not able to write what an earlier one wrote.
"""

import argparse
import asyncio
import signal
import sys
import tempfile
import time
from contextlib import aclosing
from pathlib import Path
from typing import Final

import msgspec

from kettle.client import select
from kettle.client.jobs.status import Status
from kettle.client.jobs.submission import prepare
from kettle.eventsourcing.log import Log
from kettle.pool.personal_settings import Value
from kettle.storage import PgLog
from kettle.testing.throwaway_pool import ThrowawayPool, throwaway_pool
from kettle_services.master.domain.start_order import DAEMON_LIST
from kettle_services.scaler.record import SHARD as SCALER
from kettle_wire.commands.queue import Submitted
from kettle_wire.events import Event, JobContinued, JobDisconnected, JobReconnected, JobVacated
from kettle_wire.events.codec import CODEC
from kettle_wire.frames import Frame
from kettle_wire.jobs import JobId

from . import (
    elastic_events,
    entrypoint_events,
    identity_events,
    service_events,
    session_events,
    task_queue_events,
    workflow_events,
)
from .folds import expected
from .recording import HERE, read, versions, write

_WITHIN_S: Final = 60.0
_SHORT: Final = """\
executable = end.sh
arguments = $(how)
transfer_input_files = input
output = out.$(Process)
error = err.$(Process)
log = short.log
request_memory = 16
request_disk = 1024
job_machine_attrs = Arch
match_list_length = 2
queue how in (0 3 kill)
"""
_NOOP: Final = """\
executable = /bin/true
transfer_executable = false
log = noop.log
request_memory = 16
request_disk = 1024
noop_job = true
noop_job_exit_code = 3
hold = $(held)
queue held in (true false)
"""
_LONG: Final = """\
executable = /bin/sleep
arguments = 600
log = {log}
priority = 5
request_memory = 16
request_disk = 1024
queue {count}
"""
_LATE: Final = """\
executable = /bin/true
transfer_executable = false
arguments = $(Process)
log = late.log
requirements = false
max_idle = 1
max_materialize = 3
queue 5
"""
_PAUSED: Final = """\
executable = /bin/sleep
arguments = 600
log = paused.log
request_memory = 16
request_disk = 1024
+Pausing = true
queue
"""
_SAVING: Final = """\
executable = save.sh
checkpoint_exit_code = 85
log = saving.log
request_memory = 16
request_disk = 1024
queue
"""
_TELLING: Final = """\
executable = tell.sh
log = telling.log
want_io_proxy = true
request_memory = 16
request_disk = 1024
queue
"""
_TASKS: Final = """\
tasks = tasks.json
log = tasks.log
request_memory = 16
request_disk = 1024
queue
"""
_NODES: Final = """\
universe = parallel
machine_count = 2
executable = /bin/true
transfer_executable = false
log = nodes.log
request_memory = 16
request_disk = 1024
+ParallelShutdownPolicy = "WAIT_FOR_ALL"
queue
"""
"""It needs the whole pool."""
_OWNER: Final[dict[str, str | float]] = {
    "polling_interval": 0.2,
    "want_suspend": "TARGET.Pausing =?= true",
    "suspend": "TotalJobSuspendTime =?= undefined",
    "continue": "time() - EnteredCurrentActivity >= 1",
}
"""A machine on which jobs are suspended that ask for it, once."""
_MANY: Final = """\
executable = /bin/true
transfer_executable = false
arguments = $(Process)
log = many.log
requirements = false
queue 20
"""
_ALIKE: Final = """\
executable = /bin/true
transfer_executable = false
arguments = {number}
requirements = false
queue
"""
_STAYING: Final = """\
executable = /bin/true
transfer_executable = false
log = staying.log
request_memory = 16
request_disk = 1024
leave_in_queue = {leave}
queue
"""
_IMPOSSIBLE: Final = """\
executable = /bin/true
requirements = TARGET.Memory > 1000000 && TARGET.HasFileTransfer
queue 2
"""
_TIMED: Final = """\
executable = /bin/true
cron_minute = {minute}
queue
"""
"""Of the calendar; not near enough for a machine to be kept for it, which the others need."""


async def record() -> dict[str, list[Frame]]:
    """The frames of all shards of a pool with an eventful life."""
    with tempfile.TemporaryDirectory(prefix="kettle-recording-") as directory:
        place = Path(directory)
        settings: dict[str, dict[str, Value]] = {
            "startd": {"name": "node1.example.org", **_OWNER},
            "schedd": {"lease": 30.0},
            "master": {"not_responding_timeout": 120.0, "daemon_list": [*DAEMON_LIST, "iam"]},
            **identity_events.settings(place),
            "negotiator": {"charge_interval": 1.0},
        }
        async with throwaway_pool(place, cpus=2, settings=settings) as pool:
            await identity_events.happen(pool)
            await _live(pool, place)
            async with PgLog.connect(pool.client.pool.database_url) as log:
                await _everything(log)
                return {**await _frames(log), **_decided()}


async def _live(pool: ThrowawayPool, place: Path) -> None:
    client = pool.client
    script = place / "end.sh"
    script.write_text('#!/bin/sh\ncat input\n[ "$1" = kill ] && kill -9 $$\nexit "$1"\n')
    script.chmod(0o755)
    (place / "input").write_text("some input\n")
    for text in (_SHORT, _NODES):
        short = (await client.submit(text, cwd=place)).cluster
        async with asyncio.timeout(_WITHIN_S):
            await client.wait(select(short))
    await client.submit(_TIMED.format(minute=(time.localtime().tm_min + 30) % 60), cwd=place)
    await client.accountant.set("somebody", "factor", 10.0)
    await client.accountant.reset_usage("somebody")
    await client.accountant.delete("somebody")
    waiting = (await client.submit(_IMPOSSIBLE, cwd=place)).cluster
    await client.hold(select(waiting), "it waits for somebody")
    await client.release(select(f"{waiting}.0"), "it may wait in the queue")
    await _many(pool, place)
    ended = (await client.submit(_LONG.format(log="held.log", count=2), cwd=place)).cluster
    await _until(pool, ended, "running", 2)
    await client.hold(select(f"{ended}.0"), "a reason for a hold")
    await _until(pool, ended, "held", 1)
    await client.release(select(f"{ended}.0"), "a reason for a release")
    await client.remove(select(f"{ended}.1"), "a reason for a removal")
    await _until(pool, ended, "running", 1)
    killed = pool.kill("startd", signal.SIGTERM)  # a machine leaves in good order and comes back
    await pool.restarted("startd", after=killed)
    await _until(pool, ended, "running", 1)
    late = (await client.submit(_LATE, cwd=place)).cluster
    await client.edit(late, {"JobMaterializeMaxIdle": 2})
    await client.hold(select(late))
    await client.remove(select(late))
    paused = (await client.submit(_PAUSED, cwd=place)).cluster
    await _recorded(pool, JobId(paused, 0), JobContinued)
    await client.remove(select(paused))
    saving = place / "save.sh"
    saving.write_text("#!/bin/sh\n[ -e saved ] && exit 0\ntouch saved\nexit 85\n")
    saving.chmod(0o755)
    saved = (await client.submit(_SAVING, cwd=place)).cluster
    async with asyncio.timeout(_WITHIN_S):
        await client.wait(select(saved))
    await _telling(pool, place)
    await _moved(pool, place)
    await _staying(pool, place)
    unborn = (await client.submit(_NOOP, cwd=place)).cluster
    await client.release(select(unborn), "it may end now")
    async with asyncio.timeout(_WITHIN_S):
        await client.wait(select(unborn))
    last = (await client.submit(_LONG.format(log="last.log", count=3), cwd=place)).cluster
    await _until(pool, last, "running", 1)
    await _away(pool, JobId(ended, 0))


async def _telling(pool: ThrowawayPool, place: Path) -> None:
    """A job says something of itself, and the machine of another one what its tasks have done."""
    await _stepping(pool, place)
    telling = place / "tell.sh"
    telling.write_text(
        "#!/bin/sh\ncondor_chirp set_job_attr Stage 2 && condor_chirp ulog 'half of it is done'\n"
    )
    telling.chmod(0o755)
    told = (await pool.client.submit(_TELLING, cwd=place)).cluster
    async with asyncio.timeout(_WITHIN_S):
        await pool.client.wait(select(told))


async def _stepping(pool: ThrowawayPool, place: Path) -> None:
    """A job has several tasks, of which one is tried twice."""
    (place / "tasks.json").write_text(
        '{"tasks":[{"cmd":["/bin/sleep","600"],"type":"sidecar"},{"cmd":["/bin/true"]},'
        '{"cmd":["/bin/sh","-c","test -e again || { touch again; exit 3; }"],"retries":1}]}'
    )
    cluster = (await pool.client.submit(_TASKS, cwd=place)).cluster
    async with asyncio.timeout(_WITHIN_S):
        await pool.client.wait(select(cluster))


async def _moved(pool: ThrowawayPool, place: Path) -> None:
    """A job is wanted off its machine."""
    client = pool.client
    moved = (await client.submit(_LONG.format(log="moved.log", count=1), cwd=place)).cluster
    await _until(pool, moved, "running", 1)
    await client.act("vacate", select(moved), "it is to run somewhere else")
    await _recorded(pool, JobId(moved, 0), JobVacated)
    await client.remove(select(moved))


async def _staying(pool: ThrowawayPool, place: Path) -> None:
    """
    Of jobs that have ended one stays in the queue, one is edited and leaves it, and one leaves it by force.
    """
    client = pool.client
    texts = [_STAYING.format(leave=leave) for leave in ("JobStatus == 4", "Stays =!= false", "true")]
    stays, edited, forced = [(await client.submit(text, cwd=place)).cluster for text in texts]
    async with asyncio.timeout(_WITHIN_S):
        await client.wait(select(stays, edited, forced))
    await client.edit_jobs(select(edited), {"Stays": False})
    await client.remove(select(forced), "it is not wanted any more")
    await client.act("remove_x", select(forced), "nor is its memory")


async def _many(pool: ThrowawayPool, place: Path) -> None:
    """Things are done with many jobs at once, of which some have been through other things."""
    client = pool.client
    many = (await client.submit(_MANY, cwd=place)).cluster
    await client.edit_jobs(select(f"{many}.1"), {"RequestMemory": 17, "Colour": "blue"})
    await client.edit_jobs(select(many), {}, add_to_priority=2)
    await client.remove(select(f"{many}.3"), "one is not wanted")
    await client.hold(select(f"{many}.5", f"{many}.6"), "two are not wanted now")
    for act in (client.hold, client.release, client.remove):
        await act(select(many), "and all the others")
    alike = {f"alike/{number}": prepare(_ALIKE.format(number=number)) for number in range(3)}
    submitted = await client.submit_many(alike)
    numbers = [each.cluster for each in submitted.values() if isinstance(each, Submitted)]
    await client.remove(select(*numbers))


async def _away(pool: ThrowawayPool, job: JobId) -> None:
    """The machine does not answer for a while, and comes back."""
    async with asyncio.timeout(_WITHIN_S), aclosing(pool.client.follow(job)) as events:
        pool.kill("startd", signal.SIGSTOP)
        async for event in events:
            if isinstance(event.event, JobDisconnected):
                pool.kill("startd", signal.SIGCONT)
            elif isinstance(event.event, JobReconnected):
                return


async def _recorded(pool: ThrowawayPool, job: JobId, kind: type[Event]) -> None:
    """
    Wait for an event of a job.  Who waits for a status that soon passes may never see it: both ends may be recorded together.
    """
    async with asyncio.timeout(_WITHIN_S), aclosing(pool.client.follow(job)) as events:
        async for event in events:
            if isinstance(event.event, kind):
                return


async def _until(pool: ThrowawayPool, cluster: int, status: Status, jobs: int) -> None:
    async with asyncio.timeout(_WITHIN_S), aclosing(pool.client.watch(select(cluster))) as watched:
        async for progress in watched:
            if progress.counts[status] >= jobs:
                return


def _decided() -> dict[str, list[Frame]]:
    """
    What happens to workflows, to machines that come and go, to jobs with routes or services and to credentials after days is decided
    without a pool.
    """
    return {
        session_events.SHARD: session_events.frames(),
        task_queue_events.SHARD: task_queue_events.frames(),
        workflow_events.SHARD: workflow_events.frames(),
        SCALER: elastic_events.frames(),
        entrypoint_events.SHARD: entrypoint_events.frames(),
        "schedd.routed": entrypoint_events.of_schedd(),
        "ce.pilots": entrypoint_events.of_pilots(),
        "collector.registry": entrypoint_events.of_registry(),
        service_events.SHARD: service_events.of_schedd(),
        "identity.renewed": entrypoint_events.frames("identity.renewed", identity_events.renewed()),
    }


async def _everything(log: Log) -> None:
    """Wait until every type that is written has been, but for what is decided without a pool."""
    wanted = set(CODEC.written) - types(_decided())
    missing = set(wanted)
    try:
        async with asyncio.timeout(_WITHIN_S):
            while missing := wanted - types(await _frames(log)):
                await asyncio.sleep(0.2)
    except TimeoutError:
        raise SystemExit(f"nothing was recorded of {', '.join(sorted(missing))}") from None


async def _frames(log: Log) -> dict[str, list[Frame]]:
    return {shard.shard: [frame async for frame in log.read(shard.shard)] for shard in await log.shards()}


def types(shards: dict[str, list[Frame]]) -> set[str]:
    """The tags that occur."""
    return {entry.type for frames in shards.values() for frame in frames for entry in frame.entries}


def main() -> None:
    """Record, or fold again."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("version", nargs="?", help="the version that writes what is recorded, as in 0.2.0")
    parser.add_argument("--refold", action="store_true", help="only compute again what recordings come to")
    arguments = parser.parse_args()
    if arguments.version:
        directory = HERE / arguments.version
        if directory.exists():
            raise SystemExit(f"{directory} is there: a recording is never replaced")
        write(directory, asyncio.run(record()))
    elif not arguments.refold:
        parser.error("give a version, or --refold")
    for directory in versions():
        shards = read(directory)
        (directory / "expected.json").write_bytes(expected(shards))
        sys.stdout.write(f"{directory.name}: {msgspec.json.encode(sorted(types(shards))).decode()}\n")


if __name__ == "__main__":
    main()
