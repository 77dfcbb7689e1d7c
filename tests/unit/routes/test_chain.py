"""What each station calls a job."""

import pytest

from kettle.classad import ClassAd, evaluate, parse
from kettle.routes.chain import ChainState, chain_condition, chain_of
from kettle_wire.ads.types import Ad

AT_SLURM: Ad = {
    "ClusterId": 12,
    "ProcId": 3,
    "GlobalJobId": "schedd@pool#12.3#1",
    "JobStatus": 1,
    "AwaitsRoute": True,
    "RouteName": "Slurm",
    "GridResource": "batch slurm",
    "GridJobId": "batch slurm here.example slurm/20261126/4711",
    "GridJobStatus": "QUEUED",
}


@pytest.mark.parametrize(
    ("changes", "state"),
    [
        ({"RouteName": "", "UnroutedReason": "no route takes it"}, ChainState.RECEIVED),
        ({"GridJobStatus": ""}, ChainState.ROUTED),
        ({}, ChainState.QUEUED),
        ({"GridJobStatus": "RUNNING"}, ChainState.RUNNING),
        ({"GridJobStatus": "SUSPENDED"}, ChainState.STOPPED),
        ({"JobStatus": 2}, ChainState.RUNNING),
        ({"JobStatus": 5, "HoldReason": "why"}, ChainState.STOPPED),
        ({"JobStatus": 5, "GridJobStatus": "UNKNOWN"}, ChainState.LOST),
        ({"JobStatus": 1, "GridJobStatus": "UNKNOWN"}, ChainState.ROUTED),
        ({"JobStatus": 4, "ExitCode": 0}, ChainState.ENDED),
        ({"JobStatus": 3, "RemoveReason": "why"}, ChainState.ENDED),
    ],
)
def test_one_word_says_how_far_a_job_is(changes: Ad, state: ChainState) -> None:
    """The schedd's word comes before the batch system's."""
    assert state is chain_of(AT_SLURM | changes).state


def test_an_exit_code_that_is_not_known_is_none() -> None:
    """A job that was removed has none, and one that a signal ended has none."""
    assert 7 == chain_of(AT_SLURM | {"JobStatus": 4, "ExitCode": 7}).exit_code
    assert chain_of(AT_SLURM | {"JobStatus": 4, "ExitCode": 7, "ExitBySignal": True}).exit_code is None
    removed = chain_of(AT_SLURM | {"JobStatus": 3, "RemoveReason": "by hand"})
    assert (None, "removed", "by hand") == (removed.exit_code, removed.outcome, removed.reason)


@pytest.mark.parametrize(
    ("name", "is_meant"),
    [
        ("4711", True),
        ("slurm/20261126/4711", True),
        ("batch slurm here.example slurm/20261126/4711", True),
        ("schedd@pool#12.3#1", True),
        ("711", False),
        ('" || true || "', False),
        ("\\", False),
    ],
)
def test_any_name_of_the_chain_finds_the_job(name: str, is_meant: bool) -> None:
    """A part of a name does not, and what is typed is a text, never an expression."""
    assert is_meant is (evaluate(parse(chain_condition(name)), my=ClassAd.from_wire(AT_SLURM)) is True)
