"""Jobs of a real Slurm."""

import pytest
from tests.conformance.batch.suite import BatchSuite, Counted, World

from kettle.commands.local import LocalCommands
from kettle.testing.servers.slurm import PARTITION, SlurmCluster
from kettle_services.ce.batch.asking import Asking
from kettle_services.ce.batch.port import Job
from kettle_services.ce.batch.slurm import Slurm
from kettle_wire.batch import BatchRequest, EndCause

_HASTY_S = 8.0


@pytest.fixture
def world(cluster: SlurmCluster, person: str) -> World:
    place = cluster.place / "sandboxes"
    place.mkdir(mode=0o755, exist_ok=True)
    commands = Counted(LocalCommands({"SLURM_CONF": str(cluster.configuration)}))
    hasty = LocalCommands({"SLURM_CONF": str(cluster.hasty_configuration)})

    return World(
        system=Slurm(Asking(commands, patience=60.0), accounting=False),
        hasty=Slurm(Asking(hasty, patience=_HASTY_S), accounting=False),
        commands=commands,
        place=place,
        owner=person,
        bad=BatchRequest(queue="nowhere"),
        away=cluster.away,
        silent=cluster.silent,
        large=BatchRequest(cpus=8, memory=50),
    )


class TestSlurm(BatchSuite):
    """The suite, and what is Slurm's own."""

    async def test_a_job_is_written_as_it_was_meant(self, world: World, cluster: SlurmCluster) -> None:
        """Cores, memory, wall time, queue and a whole node reach the controller as the request says."""
        request = BatchRequest(cpus=2, memory=300, wall=90, queue=PARTITION, arguments=["--nice=7"])
        job, _ = await world.submitted("while :; do sleep 1; done", request)
        said = cluster.run("scontrol", "--oneliner", "show", "job", job.id)
        for each in ("CPUs/Task=2", "MinMemoryNode=300M", "TimeLimit=00:02:00", f"Partition={PARTITION}",
                     "Requeue=0", "Nice=7", f"UserId={world.owner}("):  # fmt: skip
            assert each in said
        whole, _ = await world.submitted("exit 0", BatchRequest(whole_node=True))
        assert "OverSubscribe=NO" in cluster.run("scontrol", "--oneliner", "show", "job", whole.id)
        for made in (job, whole):
            await world.system.cancel(made)
            await world.ended(made)

    async def test_a_signal_is_no_exit_code(self, world: World) -> None:
        """A job that a signal ended has that, and no exit code."""
        job, _ = await world.submitted("kill -9 $$")
        end = await world.ended(job)
        assert (EndCause.EXITED, None, 9) == (end.cause, end.exit_code, end.signal)

    async def test_an_array_is_one_job(self, world: World) -> None:
        """
        A job that was submitted as an array is there until all of it has ended, and failed if a part did.
        """
        request = BatchRequest(memory=50, arguments=["--array=1-3"])
        job, _ = await world.submitted("exit $((SLURM_ARRAY_TASK_ID == 2))", request)
        assert 1 == (await world.ended(job)).exit_code

    async def test_an_account_that_is_gone_hides_no_job(self, world: World) -> None:
        """
        `squeue` says of an unknown user that it is none, lists the others' jobs and ends well; all of them are known all the same.
        """
        job, _ = await world.submitted("while :; do sleep 1; done")
        left, _ = await world.submitted("while :; do sleep 1; done")
        stranger = Job(left.id, left.intent, "nobody-has-this-name")
        assert {job.id, left.id} == set(await world.system.poll([job, stranger]))
        for each in (job, left):
            await world.system.cancel(each)
            await world.ended(each)
