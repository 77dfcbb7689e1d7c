"""How often a program that ends with a checkpoint is started again."""

from pathlib import Path

import pytest

from kettle.execution.job_environment.job_ad import JobAd
from kettle.execution.sandbox.directory import Sandbox
from kettle_services.starter import self_checkpoint
from kettle_services.starter.self_checkpoint import SelfCheckpoint
from kettle_wire.attempts import Usage
from kettle_wire.jobs import JobId
from kettle_wire.worker_reports import Body, Report


def report(body: Body) -> Report:
    return Report(claim="c", attempt=1, sequence=1, job=JobId(1, 0), body=body)


@pytest.mark.parametrize(
    ("cpu", "pauses"),
    [
        ([0.1] * 8, [10, 20, 40, 80, 160, 300, 300, 300]),
        ([5.0] * 3, [10, 10, 10]),
        ([0.1, 0.1, 5.0, 0.1], [10, 20, 10, 20]),
    ],
)
def test_a_program_that_does_nothing_else_is_started_ever_more_rarely(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cpu: list[float], pauses: list[int]
) -> None:
    """
    Ten seconds between two starts, and twice as long each time that no CPU was used, up to five minutes.
    """
    now = 1000.0
    monkeypatch.setattr(self_checkpoint, "boottime", lambda: now)
    box = Sandbox(str(tmp_path), None)
    (tmp_path / "state").touch()
    made = SelfCheckpoint(
        JobAd({"TransferCheckpoint": "state", "SuccessCheckpointExitCode": 85}), report, 10.0
    )
    waited: list[int] = []
    for number in range(1, len(cpu) + 1):
        assert made.take(box, {}, Usage(user_cpu=sum(cpu[:number]))) is None
        began = now
        assert (False, True) == (made.goes_on, made.report is not None)
        made.confirm(number)
        assert (False, None) == (made.goes_on, made.report)
        now += made.timeout_ms() / 1000
        assert made.goes_on
        waited.append(round(now - began))

    assert pauses == waited


def test_a_program_that_takes_its_time_is_started_again_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pause counts from its last start."""
    now = 1000.0
    monkeypatch.setattr(self_checkpoint, "boottime", lambda: now)
    (tmp_path / "state").touch()
    made = SelfCheckpoint(
        JobAd({"TransferCheckpoint": "state", "SuccessCheckpointExitCode": 85}), report, 10.0
    )
    now += 11.0
    assert made.take(Sandbox(str(tmp_path), None), {}, Usage()) is None
    made.confirm(1)
    assert made.goes_on
