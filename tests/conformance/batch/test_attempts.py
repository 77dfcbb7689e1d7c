"""
Jobs at a batch system from their claim to the end of their sandbox, in front of shell programs that stand for one.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator
from functools import partial
from pathlib import Path

import msgspec
import pytest
from tests.conformance.batch.entrypoint import SCHEDD, Entrypoint, World, job, until

from kettle.testing.servers.fake_slurm import FakeSlurm
from kettle_services.ce.batch.settings import BatchSettings
from kettle_services.ce.domain.attempts.attempt import Run, Stage
from kettle_wire.batch import BatchEnd, BatchKind, BatchState
from kettle_wire.codes import HoldCode, VacateCode
from kettle_wire.commands.ce import batch_startd
from kettle_wire.commands.startd import (
    ALIVE,
    SUSPEND,
    Activation,
    Alive,
    ClaimKey,
    Suspend,
    Suspension,
)
from kettle_wire.worker_reports import Body, Continued, Measured, Started, Suspended

STARTD = batch_startd(SCHEDD)


@pytest.fixture
def fake(tmp_path: Path) -> Generator[FakeSlurm]:
    with FakeSlurm(tmp_path / "slurm") as programs:
        yield programs


@pytest.fixture
async def world(tmp_path: Path, fake: FakeSlurm) -> World:
    settings = BatchSettings(
        name="cluster",
        kind=BatchKind.SLURM,
        directory=str(tmp_path / "sandboxes"),
        environment=fake.environment,
        accounting=True,
        poll_least=0.1,
        poll_most=0.2,
        settling=0.1,
        patience=30.0,
        lost_after=3600.0,
    )
    return World(settings, tmp_path)


@pytest.fixture
async def entrypoint(world: World) -> AsyncGenerator[Entrypoint]:
    """In a task of its own: what runs in it ends in the task that began it."""
    made = asyncio.get_running_loop().create_future()
    over = asyncio.Event()

    async def run() -> None:
        async with world.running() as running:
            await running.well()
            made.set_result(running)
            await over.wait()

    running: asyncio.Future[None] = asyncio.create_task(run())
    await asyncio.wait({running, made}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    yield made.result()
    over.set()
    await running


def _has(entrypoint: Entrypoint, activation: Activation, kind: type[Body]) -> bool:
    """Whether such a report has come."""
    return any(isinstance(each, kind) for each in entrypoint.bodies(activation))


class TestALife:
    """What happens to a job that nothing happens to."""

    async def test_a_job_runs_and_its_results_come_back(
        self, entrypoint: Entrypoint, fake: FakeSlurm
    ) -> None:
        """
        A job gets its inputs, runs as it was described, and its exit code, streams and results are reported once they are there;
        when that is confirmed nothing of it is left.
        """
        fake.set_mode("runs")
        program = 'cat in; echo bad >&2; echo "$1 $NAME" >made; head -c 100000 /dev/zero >large; exit 3'
        activation = await entrypoint.submit(program, Arguments="'two words'", Environment="NAME='a value'")
        final = await entrypoint.final(activation)
        assert final.result.exit is not None
        assert (3, None) == (final.result.exit.code, final.result.ending)
        data = {each.name: each.data for each in final.outputs}
        assert {
            "_condor_stdout": b"what it reads\n",
            "_condor_stderr": b"bad\n",
            "made": b"two words a value\n",
            "large": None,
        } == data
        assert bytes(100_000) == await entrypoint.output(activation, "large", 100_000)
        told = [each.told for each in entrypoint.bodies(activation) if isinstance(each, Measured)]
        for each in (*told, final.told):
            assert each["GridJobId"].endswith('/100"')
        await entrypoint.confirm(activation)

    async def test_a_repeat_changes_nothing(self, entrypoint: Entrypoint, fake: FakeSlurm) -> None:
        """
        A job that is activated again is not submitted again; another one on its claim, and one without a claim, are refused.
        """
        activation = await entrypoint.submit("exit 0")
        await entrypoint.stage(activation, Stage.SUBMITTED)
        assert 0 == (await entrypoint.activate(activation.key, activation)).code
        other = msgspec.structs.replace(job(activation.key, "exit 0"), attempt=2)
        refused = await entrypoint.activate(activation.key, other)
        assert VacateCode.ActivationRefusedNotIdle == refused.code
        stranger = job(ClaimKey(activation.key.claim, "guessed"), "exit 0")
        assert (
            VacateCode.ActivationRefusedClaimNotFound
            == (await entrypoint.activate(stranger.key, stranger)).code
        )
        assert 1 == fake.asked("sbatch")

    async def test_where_it_is_reaches_the_access_point(
        self, entrypoint: Entrypoint, fake: FakeSlurm
    ) -> None:
        """That a job runs, is suspended and goes on is reported, each once."""
        activation = await entrypoint.submit("exit 0")
        run = await entrypoint.stage(activation, Stage.SUBMITTED)
        for word, kind in (("RUNNING", Started), ("SUSPENDED", Suspended), ("RUNNING", Continued)):
            fake.change(run.id, word)
            await until(
                partial(_has, entrypoint, activation, kind), lambda: f"{entrypoint.bodies(activation)}"
            )
        assert 1 == sum(isinstance(each, Started) for each in entrypoint.bodies(activation))

    async def test_a_job_is_stopped_and_goes_on(
        self, entrypoint: Entrypoint, fake: FakeSlurm, world: World
    ) -> None:
        """
        What its owner wants is told to the batch system, also while it waits; an order from before changes nothing.
        """
        activation = await entrypoint.submit("exit 0")
        run = await entrypoint.stage(activation, Stage.SUBMITTED)

        async def ordered(number: int, *, suspended: bool) -> None:
            order = Suspension(
                key=activation.key, job=activation.job, attempt=1, suspended=suspended, number=number
            )
            await world.shadow.call(SUSPEND, STARTD, Suspend(orders=[order]))

        await ordered(2, suspended=True)
        await until(lambda: fake.jobs()[run.id][3] == "JobHeldUser", lambda: f"{fake.jobs()}")
        await ordered(1, suspended=False)
        await until(
            lambda: (found := entrypoint.run(activation)) is not None and found.state is BatchState.HELD,
            lambda: f"{entrypoint.run(activation)}",
        )
        await ordered(3, suspended=False)
        await until(lambda: fake.jobs()[run.id][3] == "None", lambda: f"{fake.jobs()}")


class TestEnds:
    """How jobs end."""

    async def test_a_job_that_is_to_end_is_removed_there(
        self, entrypoint: Entrypoint, fake: FakeSlurm, world: World
    ) -> None:
        """
        A job that is to be held is cancelled at the batch system, and reported with that reason when it is gone there.
        """
        fake.set_mode("runs")
        activation = await entrypoint.submit("sleep 600")
        await entrypoint.stage(activation, Stage.SUBMITTED)
        wanted = await entrypoint.deactivate(activation)
        final = await entrypoint.final(activation)
        assert (None, wanted) == (final.result.exit, final.result.ending)
        await entrypoint.confirm(activation)

    @pytest.mark.parametrize(
        ("word", "status", "code"),
        [
            ("CANCELLED", 15, VacateCode.RemovedInBatchSystem),
            ("OUT_OF_MEMORY", 9, HoldCode.JobOutOfResources),
            ("TIMEOUT", 0, HoldCode.JobDurationExceeded),
            ("DEADLINE", 0, HoldCode.JobDurationExceeded),
            ("NODE_FAIL", 0, VacateCode.StartdException),
            ("PREEMPTED", 0, VacateCode.StartdPreemptExpression),
            ("BOOT_FAIL", 0, VacateCode.JobNotStarted),
        ],
    )
    async def test_what_the_site_did_is_not_the_end_of_the_program(
        self, entrypoint: Entrypoint, fake: FakeSlurm, word: str, status: int, code: int
    ) -> None:
        """A job that the site ended has no exit code but the reason."""
        activation = await entrypoint.submit("exit 0")
        run = await entrypoint.stage(activation, Stage.SUBMITTED)
        fake.change(run.id, word, status=status)
        final = await entrypoint.final(activation)
        assert final.result.exit is None
        assert final.result.ending is not None
        assert code == final.result.ending.code
        assert word in final.result.ending.reason

    async def test_a_word_that_nobody_knows_changes_nothing(
        self, entrypoint: Entrypoint, fake: FakeSlurm
    ) -> None:
        """A state that is not known is not taken for another one: the job stays what it was."""
        activation = await entrypoint.submit("exit 0")
        run = await entrypoint.stage(activation, Stage.SUBMITTED)
        fake.change(run.id, "RUNNING")
        await until(
            lambda: (found := entrypoint.run(activation)) is not None and found.state is BatchState.RUNNING,
            lambda: f"{entrypoint.run(activation)}",
        )
        fake.change(run.id, "TRANSMOGRIFIED")
        asked = fake.asked("squeue")
        await until(lambda: fake.asked("squeue") > asked + 2, lambda: "it is not asked for")
        found = entrypoint.run(activation)
        assert found is not None
        assert (Stage.SUBMITTED, BatchState.RUNNING) == (found.stage, found.state)

    async def test_a_job_that_is_not_listed_is_judged_by_the_books(
        self, entrypoint: Entrypoint, fake: FakeSlurm
    ) -> None:
        """
        A job that vanishes from the list has not ended while its books do not say so, and cannot be asked; then they say how.
        """
        activation = await entrypoint.submit("exit 0")
        run = await entrypoint.stage(activation, Stage.SUBMITTED)
        fake.set_mode("vanished", "unaccounted")
        asked = fake.asked("sacct")
        await until(lambda: fake.asked("sacct") > asked, lambda: "its books are not asked")
        await entrypoint.stage(activation, Stage.SUBMITTED)
        fake.change(run.id, "FAILED", status=4 << 8)
        fake.set_mode("vanished")
        final = await entrypoint.final(activation)
        assert final.result.exit is not None
        assert 4 == final.result.exit.code

    async def test_the_word_of_a_job_counts_more_than_books_without_an_end(
        self, entrypoint: Entrypoint, fake: FakeSlurm
    ) -> None:
        """A job that is in no list, and runs by books that nobody closes, has ended if it says so."""
        activation = await entrypoint.submit("exit 0")
        run = await entrypoint.stage(activation, Stage.SUBMITTED)
        fake.change(run.id, "RUNNING")
        fake.set_mode("vanished")
        Path(entrypoint.follower.sandboxes.path(run.intent), ".kettle", "end").write_text("code 0 1 2\n")
        final = await entrypoint.final(activation)
        assert final.result.exit is not None
        assert 0 == final.result.exit.code

    async def test_a_job_that_nobody_has_is_removed_whatever_the_books_say(
        self, world: World, fake: FakeSlurm
    ) -> None:
        """
        A job that runs by its books without end is over when it is to be removed, and the controller answers that it has none.
        """
        world.settings = msgspec.structs.replace(world.settings, lost_after=0.2)
        async with world.running() as entrypoint:
            await entrypoint.well()
            activation = await entrypoint.submit("exit 0")
            run = await entrypoint.stage(activation, Stage.SUBMITTED)
            fake.change(run.id, "RUNNING")
            fake.set_mode("forgotten")
            asked = fake.asked("sacct")
            await until(lambda: fake.asked("sacct") > asked + 3, lambda: "its books are not asked")
            await entrypoint.stage(activation, Stage.SUBMITTED)
            wanted = await entrypoint.deactivate(activation)
            final = await entrypoint.final(activation)
            assert (None, wanted) == (final.result.exit, final.result.ending)

    @pytest.mark.parametrize("modes", [(), ("vanished", "unbooked")])
    async def test_jobs_that_end_together_are_read_together(
        self, entrypoint: Entrypoint, fake: FakeSlurm, monkeypatch: pytest.MonkeyPatch, modes: tuple[str, ...]
    ) -> None:
        """
        What jobs have left is asked for of all that ended, and not of one after the other, whether they are listed or not.
        """
        jobs = [await entrypoint.submit("exit 6") for _ in range(3)]
        runs = [await entrypoint.stage(each, Stage.SUBMITTED) for each in jobs]
        together, left = asyncio.Barrier(3), entrypoint.follower.sandboxes.left

        async def left_together(run: Run) -> BatchEnd | None:
            await together.wait()
            return await left(run)

        monkeypatch.setattr(entrypoint.follower.sandboxes, "left", left_together)
        for run in runs:
            Path(entrypoint.follower.sandboxes.path(run.intent), ".kettle", "end").write_text(
                "code 6 10 12\n"
            )
        if modes:
            fake.set_mode(*modes)
        else:
            fake.change_all([run.id for run in runs], "FAILED", status=6 << 8)
        ends = [(await entrypoint.final(each)).result.exit for each in jobs]
        assert [6, 6, 6] == [each.code for each in ends if each is not None]

    async def test_a_job_leaves_word_itself(self, entrypoint: Entrypoint, fake: FakeSlurm) -> None:
        """Where neither list nor books name a job, what it has written when it ended says how."""
        fake.set_mode("runs")
        activation = await entrypoint.submit("until [ -e go ]; do sleep 0.1; done; exit 6")
        run = await entrypoint.stage(activation, Stage.SUBMITTED)
        sandbox = Path(entrypoint.follower.sandboxes.path(run.intent))
        fake.set_mode("vanished", "unbooked")
        # Not before: the list might say how it has ended, before anybody sees that it was submitted.
        (sandbox / "go").touch()
        await until((sandbox / ".kettle" / "end").exists, lambda: "it does not end")
        final = await entrypoint.final(activation)
        assert final.result.exit is not None
        assert 6 == final.result.exit.code


class TestRefusals:
    """What is not taken, or not now."""

    async def test_what_is_not_known_is_refused_with_the_nearest_name(self, entrypoint: Entrypoint) -> None:
        """There is no claim of a batch system that is not there; a kind means the first one of it."""
        _, decided = await entrypoint.claim("clustre")
        assert [] == decided.granted
        assert "cluster" in decided.reason
        _, decided = await entrypoint.claim("slurm")
        assert 1 == len(decided.granted)

    async def test_one_that_does_not_answer_grants_nothing(
        self, entrypoint: Entrypoint, fake: FakeSlurm
    ) -> None:
        """While the controller is away no claim is granted, with the reason; then they are again."""
        activation = await entrypoint.submit("exit 0")
        await entrypoint.stage(activation, Stage.SUBMITTED)
        fake.set_mode("down")
        await until(lambda: bool(entrypoint.follower.trouble), lambda: "nobody notices")
        _, decided = await entrypoint.claim()
        assert [] == decided.granted
        assert "does not answer" in decided.reason

    async def test_a_job_is_taken_later(self, entrypoint: Entrypoint, fake: FakeSlurm) -> None:
        """
        A refusal that passes defers the job; one that is to end meanwhile is over without having been there.
        """
        fake.set_mode("full")
        activation = await entrypoint.submit("exit 0")
        run = await entrypoint.stage(activation, Stage.DEFERRED)
        assert "job submit limit" in run.words
        wanted = await entrypoint.deactivate(activation)
        assert wanted == (await entrypoint.final(activation)).result.ending

    async def test_what_cannot_be_written_is_held(self, entrypoint: Entrypoint, fake: FakeSlurm) -> None:
        """
        A request that would be another directive, or no number, holds the job with a sentence; nothing is submitted.
        """
        for name, value in (("BatchQueue", "short\n#SBATCH --uid=0"), ("RequestMemory", "much")):
            activation = await entrypoint.submit("exit 0", **{name: value})
            ending = (await entrypoint.final(activation)).result.ending
            assert ending is not None
            assert name in ending.reason
            assert ending.holds
        assert 0 == fake.asked("sbatch")


class TestRestarts:
    """What a new process makes of what the last one left."""

    async def test_an_answer_that_was_lost_is_looked_for(self, world: World, fake: FakeSlurm) -> None:
        """
        A process that dies while the batch system is asked leaves a job that the next one finds: it is submitted once.
        """
        fake.set_mode("deaf")
        async with world.running() as first:
            await first.well()
            activation = await first.submit("exit 0")
            await until(lambda: bool(fake.jobs()), lambda: "it is not submitted")
            await first.stage(activation, Stage.SUBMITTING)
        fake.set_mode()
        async with world.running() as second:
            run = await second.stage(activation, Stage.SUBMITTED)
            assert [run.id] == list(fake.jobs())
        assert 1 == fake.asked("sbatch")

    async def test_a_job_that_never_came_is_submitted_when_it_cannot_come(
        self, world: World, fake: FakeSlurm
    ) -> None:
        """A job that is in doubt and not there is submitted again, and then is there once."""
        world.settings = msgspec.structs.replace(world.settings, patience=3.0)
        fake.set_mode("deaf")
        async with world.running() as first:
            await first.well()
            activation = await first.submit("exit 0")
            await until(lambda: bool(fake.jobs()), lambda: "it is not submitted")
        (fake.place / "journal").write_text("")
        fake.set_mode()
        async with world.running() as second:
            await second.stage(activation, Stage.SUBMITTED)
            assert 1 == len(fake.jobs())

    async def test_a_job_that_ended_before_it_was_looked_for_is_not_submitted_again(
        self, world: World, fake: FakeSlurm
    ) -> None:
        """
        A batch system that lists no job that has ended, and keeps no books, says nothing of it; that it began is seen in its sandbox.
        """
        world.settings = msgspec.structs.replace(world.settings, patience=3.0)
        fake.set_mode("deaf", "runs")
        async with world.running() as first:
            await first.well()
            activation = await first.submit("exit 5")
            run = await first.stage(activation, Stage.SUBMITTING)
            sandbox = Path(first.follower.sandboxes.path(run.intent))
            await until((sandbox / ".kettle" / "end").exists, lambda: "it does not end")
        fake.set_mode("vanished", "unbooked")
        async with world.running() as second:
            final = await second.final(activation)
            assert final.result.exit is not None
            assert (5, "100") == (
                final.result.exit.code,
                final.told["GridJobId"].strip('"').rpartition("/")[2],
            )
        assert 1 == fake.asked("sbatch")

    async def test_an_end_is_told_again_until_it_is_confirmed(self, world: World, fake: FakeSlurm) -> None:
        """
        What had ended is reported by the next process as well, with its results; its claims are renewed and known.
        """
        fake.set_mode("runs")
        async with world.running() as first:
            await first.well()
            activation = await first.submit("echo made >made")
            await first.final(activation)
        world.reports.clear()
        async with world.running() as second:
            final = await second.final(activation)
            assert ["made"] == [
                each.name for each in final.outputs if each.size and "condor" not in each.name
            ]
            reply = await world.bus.call(
                ALIVE, STARTD, Alive(schedd=SCHEDD, claims=[activation.key], deadline=None)
            )
            assert ([], []) == (reply.unknown, reply.extra)
            await second.confirm(activation)

    async def test_the_end_of_a_second_job_is_not_that_of_the_first(
        self, entrypoint: Entrypoint, fake: FakeSlurm
    ) -> None:
        """
        A job that was submitted twice, and of which the second one is known, which has found the first at work and ended: the first is
        followed, and its end is that of the job.
        """
        activation = await entrypoint.submit("exit 0")
        second = await entrypoint.stage(activation, Stage.SUBMITTED)
        ours = Path(entrypoint.follower.sandboxes.path(second.intent), ".kettle")
        (ours / "begun").mkdir()
        (ours / "begun" / "by").write_text("1\n")
        fake.add("1", second.intent, "RUNNING")
        fake.change(second.id, "FAILED", status=74 << 8)
        await until(
            lambda: (
                (run := entrypoint.run(activation)) is not None
                and (run.stage, run.id) == (Stage.SUBMITTED, "1")
            ),
            lambda: f"{entrypoint.run(activation)}",
        )
        assert ours.exists()
        (ours / "end").write_text("code 5 10 12\n")
        fake.change("1", "FAILED", status=5 << 8)
        final = await entrypoint.final(activation)
        assert final.result.exit is not None
        assert 5 == final.result.exit.code

    async def test_a_second_run_of_the_script_does_nothing(
        self, entrypoint: Entrypoint, fake: FakeSlurm
    ) -> None:
        """A script that a batch system was given twice runs for the first one that begins it."""
        activation = await entrypoint.submit("echo again >>runs; [ -e go ]")
        run = await entrypoint.stage(activation, Stage.SUBMITTED)
        sandbox = Path(entrypoint.follower.sandboxes.path(run.intent))
        statuses: list[int | None] = []
        for number in ("1", "2", "1"):
            process = await asyncio.create_subprocess_exec(
                "sh", fake.jobs()[run.id][5], env={"SLURM_JOB_ID": number, "PATH": "/usr/bin:/bin"}
            )
            statuses.append(await process.wait())
        assert [1, 74, 1] == statuses
        assert "again\nagain\n" == (sandbox / "runs").read_text()
