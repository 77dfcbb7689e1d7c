"""No room: nothing new begins, everything else goes on, nothing is lost."""

import errno

import msgspec
import pytest

import kettle.execution.attempts.stored_reports
import kettle_services.startd.state.journal
from kettle.execution.attempts.job_spec import AttemptId
from kettle.execution.system.linux import boottime
from kettle.testing.processes import end_parent
from kettle.testing.submit_side import SCHEDD, job_ad, output, script
from kettle.testing.worker import WorkerPool
from kettle_wire.ads import Ad
from kettle_wire.commands.startd import ALIVE, Alive, ClaimKey
from kettle_wire.subjects import machine_key
from kettle_wire.worker_reports import Started


class Disk:
    """The startd's disk; the starters have one of their own."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.full = False
        put = kettle_services.startd.state.journal.write_all
        store = kettle.execution.attempts.stored_reports.store

        def limited(write: object) -> object:
            def call(*arguments: object) -> None:
                if self.full:
                    raise OSError(errno.ENOSPC, "No space left on device")
                write(*arguments)  # type: ignore[operator]

            return call

        monkeypatch.setattr(kettle_services.startd.state.journal, "write_all", limited(put))
        monkeypatch.setattr(kettle.execution.attempts.stored_reports, "store", limited(store))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    monkeypatch.setattr("kettle_services.startd.state.recorder._LOOK_S", 0.05)
    return Disk(monkeypatch)


async def test_a_full_disk_stops_what_is_new_only(pool: WorkerPool, disk: Disk) -> None:
    """
    Claims and activations are refused with a sentence, the job that runs is renewed and reported; with room all is well.
    """
    async with pool.startd() as startd:
        submitter = pool.submitter
        running = await submitter.start(script("while [ ! -e go ]; do sleep 0.05; done; echo done"))
        idle = await submitter.claim()
        await submitter.hear(running, lambda report: isinstance(report.body, Started))
        disk.full = True

        refused = await submitter.request_keys([ClaimKey("new", "s")])
        not_begun = await submitter.activate(submitter.activation(idle, job_ad(Cmd="/bin/true")))
        claims = [running.key, idle]
        lease: float = startd.machine.claims[running.key.claim].deadline  # type: ignore[attr-defined]
        alive = await submitter.schedd.call(
            ALIVE, submitter.startd, Alive(schedd=SCHEDD, claims=claims, deadline=boottime() + 60)
        )
        renewed: float = startd.machine.claims[running.key.claim].deadline  # type: ignore[attr-defined]
        again = await submitter.activate(running)
        (sandbox,) = pool.execute.glob("dir_*")
        (sandbox / "go").touch()
        ended = await submitter.final(running)

        assert renewed > lease
        assert ([], []) == (refused.granted, alive.unknown)
        assert "the disk is full" in refused.reason
        assert (1036, 0) == (not_begun.code, again.code)
        assert "the disk is full" in not_begun.reason
        assert b"done\n" == output(ended)
        disk.full = False
        await pool.until(lambda: not startd.machine.trouble)  # type: ignore[attr-defined]
        following = await submitter.start(script("true"), claim=idle)
        assert (await submitter.final(following)).result.exit is not None
        await startd.drain()


async def test_the_slots_ad_says_that_the_disk_is_full(pool: WorkerPool, disk: Disk) -> None:
    """So that nobody is matched with it, and that people see why."""
    async with pool.startd() as startd:
        submitter = pool.submitter
        await submitter.capability()
        disk.full = True
        await submitter.request_keys([ClaimKey("new", "s")])
        seen: list[object] = []
        async for change in submitter.schedd.watch(
            submitter.subjects.ads, machine_key("worker", "slot1@worker")
        ):
            if change is None or change.value is None:
                continue
            ad = msgspec.msgpack.decode(change.value, type=Ad)
            if not seen and "Trouble" in ad:
                seen.append(ad["Requirements"])
                disk.full = False
            elif seen and "Trouble" not in ad:
                break
        assert [False] == seen
        await startd.drain()


async def test_a_startd_that_starts_on_a_full_disk_keeps_what_there_is(pool: WorkerPool, disk: Disk) -> None:
    """Jobs of its predecessor are adopted and reported, new ones refused."""
    submitter = pool.submitter
    async with pool.startd():
        activation = await submitter.start(script("while [ ! -e go ]; do sleep 0.05; done; echo done"))
        await submitter.hear(activation, lambda report: isinstance(report.body, Started))
    disk.full = True

    async with pool.startd() as startd:
        refused = await submitter.request_keys([ClaimKey("new", "s")])
        assert "the disk is full" in refused.reason
        (sandbox,) = pool.execute.glob("dir_*")
        (sandbox / "go").touch()
        assert b"done\n" == output(await submitter.final(activation))
        disk.full = False
        await startd.drain()


async def test_a_lost_attempt_is_reported_from_memory(pool: WorkerPool, disk: Disk) -> None:
    """The report that the startd writes itself reaches the bus, and the disk as soon as it can."""
    async with pool.startd() as startd:
        submitter = pool.submitter
        activation = await submitter.start(script("sleep 600"))
        started = await submitter.hear(activation, lambda report: isinstance(report.body, Started))
        disk.full = True
        assert isinstance(started.body, Started)
        end_parent(started.body.pid)
        failed = await submitter.final(activation)

        assert failed.result.exit is None

        assert failed.result.ending is not None
        assert 1007 == failed.result.ending.code
        assert [] == list(pool.reports.iterdir())
        disk.full = False
        await pool.until(lambda: list(pool.reports.iterdir()))
        await startd.drain()


async def test_a_result_waits_in_the_starter_for_room(pool: WorkerPool) -> None:
    """The job's end is not lost where nothing can be written down."""
    async with pool.startd() as startd:
        submitter = pool.submitter
        activation = submitter.activation(await submitter.claim(), script("echo done"))
        attempt = AttemptId(activation.key.claim, activation.job, 1)
        in_the_way = pool.reports / attempt.name
        in_the_way.mkdir()
        await submitter.activate(activation)
        with pytest.raises(TimeoutError):
            await submitter.final(activation, wait=1.0)

        in_the_way.rmdir()

        assert b"done\n" == output(await submitter.final(activation))
        await startd.drain()
