"""What Slurm's words are taken for; those of a running cluster are in tests/conformance/providers."""

import math

import pytest

from kettle.commands.phrases import SLURM
from kettle_services.provisioner.domain import slurm_answers
from kettle_wire.leases import ErrorClass, MachineState


@pytest.mark.parametrize(
    ("state", "reason", "expected"),
    [
        ("PENDING", "None", (MachineState.PENDING, None)),
        ("PENDING", "Resources", (MachineState.PENDING, ErrorClass.CAPACITY)),
        ("PENDING", "Nodes required for job are DOWN, DRAINED", (MachineState.PENDING, ErrorClass.CAPACITY)),
        ("PENDING", "QOSMaxJobsPerUserLimit", (MachineState.PENDING, ErrorClass.QUOTA)),
        ("PENDING", "AssocGrpCpuLimit", (MachineState.PENDING, ErrorClass.QUOTA)),
        ("PENDING", "PartitionTimeLimit", (MachineState.BROKEN, ErrorClass.REQUEST)),
        ("PENDING", "JobHeldAdmin", (MachineState.BROKEN, ErrorClass.REQUEST)),
        ("RUNNING", "None", (MachineState.RUNNING, None)),
        ("COMPLETING", "None", (MachineState.STOPPING, None)),
        ("CANCELLED by 1000", "", (MachineState.GONE, None)),
        ("NODE_FAIL", "None", (MachineState.GONE, None)),
        ("A_STATE_OF_A_LATER_RELEASE", "None", (MachineState.RUNNING, None)),
        ("", "", (MachineState.RUNNING, None)),
    ],
)
def test_states(state: str, reason: str, expected: tuple[MachineState, ErrorClass | None]) -> None:
    """A pilot waits, runs, will never run or is over; a state that is not known is never one that is over."""
    assert expected == slurm_answers.standing(state, reason)


@pytest.mark.parametrize(
    ("errors", "error"),
    [
        ("sbatch: error: invalid partition specified: nope", ErrorClass.IMAGE),
        (
            "sbatch: error: Batch job submission failed: Requested node configuration is not available",
            ErrorClass.REQUEST,
        ),
        (
            "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit)",
            ErrorClass.QUOTA,
        ),
        ("sbatch: error: Batch job submission failed: Access/permission denied", ErrorClass.AUTH),
        (
            "sbatch: error: Batch job submission failed: Resource temporarily unavailable",
            ErrorClass.TRANSIENT,
        ),
    ],
)
def test_refusals(errors: str, error: ErrorClass) -> None:
    """What the controller refuses has a class, and is neither silence nor a controller that is away."""
    assert error is slurm_answers.error_of(errors)
    assert not SLURM.is_silent(errors)
    assert not SLURM.is_unreachable(errors)


def test_what_was_not_sent_is_told_from_what_got_no_answer() -> None:
    """Only a connection that was never made proves that nothing was submitted."""
    said = "sbatch: error: Batch job submission failed: Unable to contact slurm controller ({} failure)"
    assert SLURM.is_unreachable(said.format("connect"))
    assert not SLURM.is_silent(said.format("connect"))
    for each in ("send", "receive"):
        assert SLURM.is_silent(said.format(each))
        assert not SLURM.is_unreachable(said.format(each))
    assert SLURM.is_silent(
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation"
    )


def test_lines_of_others_are_passed_over() -> None:
    """Comments of other jobs may say anything, bars included; a mark in the name alone is enough."""
    output = """\
1|RUNNING|1795679677|None|kettle:here:crowd-1-0|(null)
2|RUNNING|1795679677|None|somebody's|a | b
3|PENDING|1795679678|Resources|renamed|kettle:there:crowd-1-1
4|RUNNING|1795679677|None|x|kettle:here:crowd-1-0 and more
no line of a job
"""
    found = [(job.number, job.machine.deployment, job.machine.lease) for job in slurm_answers.jobs(output)]
    assert [("1", "here", "crowd-1-0"), ("3", "there", "crowd-1-1")] == found


@pytest.mark.parametrize(
    ("partition", "seconds"),
    [
        ("short", 3600.0),
        ("long", 176_461.0),
        ("", 1800.0),
        ("debug", 1800.0),
        ("endless", math.inf),
        ("none", math.inf),
    ],
)
def test_the_longest_time_of_a_partition_is_read(partition: str, seconds: float) -> None:
    """In each form in which Slurm writes times; without a name that of the default partition."""
    output = "short 1:00:00\nlong 2-01:01:01\ndebug* 30:00\nendless infinite\n"
    assert seconds == slurm_answers.longest(output, partition)
