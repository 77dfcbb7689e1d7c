"""What the state machine of an attempt says is done to its processes, its deadlines and its reports."""

import os
from pathlib import Path
from typing import cast

import msgspec
import pytest

from kettle.execution.attempts.messages import ReportMessage, ToStartd
from kettle.execution.job_environment.job_ad import JobAd
from kettle_services.starter import stimulus_log
from kettle_services.starter.attempt_machine import AttemptMachine
from kettle_services.starter.deadlines import Deadlines
from kettle_services.starter.domain import stimuli
from kettle_services.starter.domain.instructions import Work
from kettle_services.starter.domain.state import StarterPhase, StarterState
from kettle_services.starter.execution.process_tree import ProcessTree
from kettle_services.starter.parts import StarterParts
from kettle_services.starter.reports.composition import ReportComposer
from kettle_services.starter.reports.startd_connection import StartdConnection
from kettle_services.starter.stimulus_log import RecordedStep
from kettle_wire.attempts import Ending
from kettle_wire.worker_reports import Started

from .test_signed_urls import spec

REMOVED = Ending(code=1023, reason="removed")


class FakeProcesses:
    """Processes, deadlines and parts that note what is done to them, and a line that notes what is said."""

    pid = 7

    def __init__(self) -> None:
        self.done: list[str] = []
        self.transfers = self.publisher = self

    def suspend(self) -> int:
        self.done.append("stop")
        return 3

    def resume(self) -> None:
        self.done.append("go on")

    def signal(self, number: int) -> None:
        self.done.append(f"signal {number}")

    def started(self, pid: int) -> Started:
        return Started(pid=pid, at=1.0)

    def begin(self, _: object) -> None:
        self.done.append("publish")

    def end_processes(self, _: object) -> None:
        self.done.append("end all")

    def runs(self) -> None:
        self.done.append("count")

    def rests(self) -> None:
        self.done.append("count no more")

    def asked_to_end(self) -> None:
        self.done.append("begin its time to end")

    def killed(self) -> None:
        self.done.append("forget its time to end")

    def send(self, message: ToStartd) -> bool:
        assert isinstance(message, ReportMessage)
        self.done.append(type(message.report.body).__name__)
        return True


class Attempt:
    """A machine whose work is done by the test."""

    def __init__(self, *began: stimuli.Stimulus) -> None:
        self.fake = FakeProcesses()
        self.machine = AttemptMachine(
            spec([]),
            JobAd({"KillSig": "SIGUSR1"}),
            cast("Deadlines", self.fake),
            ReportComposer(spec([])),
            cast("StarterParts", self.fake),
            cast("StartdConnection", self.fake),
            StarterState(),
        )
        for stimulus in began:
            self.machine.feed(stimulus, cast("ProcessTree", self.fake))
        self.fake.done.clear()

    def done(self, *happens: stimuli.Stimulus) -> list[str]:
        for stimulus in happens:
            self.machine.feed(stimulus, cast("ProcessTree", self.fake))
        done = self.fake.done.copy()
        self.fake.done.clear()
        return done


def test_a_program_that_runs_is_reported_and_its_time_counts() -> None:
    attempt = Attempt()
    assert ["count", "Started", "publish"] == attempt.done(stimuli.ProgramStarted())
    assert (Work.WATCH, Started) == (
        attempt.machine.work,
        type(attempt.machine.started.body) if attempt.machine.started else None,
    )


def test_nothing_is_stopped_before_it_runs() -> None:
    """
    The preparation of a job continues; the job is suspended from its first moment, unless it was continued meanwhile.
    """
    attempt = Attempt()
    assert [] == attempt.done(stimuli.SuspendRequested())
    assert ["count", "Started", "stop", "Suspended", "publish"] == attempt.done(stimuli.ProgramStarted())

    attempt = Attempt()
    assert [] == attempt.done(stimuli.SuspendRequested(), stimuli.ContinueRequested())
    assert ["count", "Started", "publish"] == attempt.done(stimuli.ProgramStarted())


def test_what_is_said_twice_happens_once() -> None:
    """And the last word is said again each time, because a report that is not final may be lost."""
    attempt = Attempt(stimuli.ProgramStarted())
    suspends, continues = stimuli.SuspendRequested(), stimuli.ContinueRequested()
    assert ["stop", "Suspended", "Suspended"] == attempt.done(suspends, suspends)
    assert ["go on", "Continued", "Continued"] == attempt.done(continues, continues)


def test_a_job_that_is_to_end_goes_on_without_a_word() -> None:
    """A stopped process does not handle signals."""
    attempt = Attempt(stimuli.ProgramStarted(), stimuli.SuspendRequested())
    assert ["begin its time to end", "signal 10", "go on"] == attempt.done(stimuli.EndRequested(REMOVED))
    assert ["forget its time to end", "signal 9"] == attempt.done(stimuli.KillTimeOver())
    assert ["end all"] == attempt.done(stimuli.ProgramEnded())
    assert (Work.COLLECT, REMOVED) == (attempt.machine.work, attempt.machine.state.ending)


def test_a_suspension_outlives_a_checkpoint() -> None:
    """
    The group is thawed to start the program again, which is stopped from its first moment; or it was continued meanwhile.
    """
    ended = (stimuli.ProgramStarted(), stimuli.SuspendRequested(), stimuli.ProgramEnded(checkpoint=True))
    attempt = Attempt(*ended[:2])
    assert ["end all", "go on", "count no more"] == attempt.done(ended[2])
    again = stimuli.CheckpointFinished(), stimuli.ProgramStartedAgain()
    assert ["count", "stop", "Suspended", "publish"] == attempt.done(*again)

    attempt = Attempt(*ended)
    assert ["Continued"] == attempt.done(stimuli.ContinueRequested())
    assert ["count", "Continued", "publish"] == attempt.done(*again)


def test_what_a_machine_was_fed_is_recorded_if_that_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a file for each attempt, which only its owner can read; without the variable there is none."""
    Attempt(stimuli.ProgramStarted())
    assert [] == list(tmp_path.iterdir())

    monkeypatch.setenv(stimulus_log.VARIABLE, str(tmp_path))
    attempt = Attempt(stimuli.ProgramStarted(), stimuli.ProgramEnded())
    attempt.done(stimuli.ResultsCollected(), stimuli.ReportStored())
    (path,) = tmp_path.iterdir()
    assert (f"{spec([]).id.name}.{os.getpid()}.jsonl", 0o100600) == (path.name, path.stat().st_mode)
    first, *lines = path.read_bytes().splitlines()
    assert StarterState() == msgspec.json.decode(first, type=StarterState)
    steps = [msgspec.json.decode(line, type=RecordedStep) for line in lines]
    assert [
        (stimuli.ProgramStarted(), StarterPhase.RUNNING),
        (stimuli.ProgramEnded(), StarterPhase.COLLECTING),
        (stimuli.ResultsCollected(), StarterPhase.REPORTING),
        (stimuli.ReportStored(), StarterPhase.OVER),
    ] == [(each.stimulus, each.state.phase) for each in steps]


def test_a_record_that_cannot_be_written_harms_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(stimulus_log.VARIABLE, str(tmp_path / "nowhere"))
    attempt = Attempt(stimuli.ProgramStarted())
    assert StarterPhase.RUNNING is attempt.machine.state.phase
    assert f"nowhere/{spec([]).id.name}.{os.getpid()}.jsonl" in capsys.readouterr().err
