"""Delays that are fitted to a recorded period, by figures that are worked out by hand."""

import pytest

from kettle.testing.invented_history import BEGIN, SCHEDD, SHARDS, InventedHistory, moment
from kettle_services.negotiator.settings import NegotiatorSettings
from kettle_services.simulator.calibration import Calibration, calibrate
from kettle_services.simulator.domain.fitting import FittedDelays, fitted
from kettle_services.simulator.domain.period import Period
from kettle_services.simulator.domain.recording import Recording
from kettle_services.simulator.what_if_file import rules
from kettle_wire.ads import Ad, Expr
from kettle_wire.attempts import ExitRecord
from kettle_wire.events import ClaimEnded, ClaimGranted, JobAssigned, JobCompleted, JobStarted

USUAL = rules(NegotiatorSettings(), worklife=0.0, factors={})
_AHEAD = 40.0
"""The machine's clock is ahead of the schedd's by so much."""


def _ran(past: InventedHistory, cluster: int, proc: int, began: float, ended: float, program: float) -> None:
    """One core of machine m; the program of the job ran for so long, and the rest is the pool's."""
    claim, stream = f"ap#{proc}", f"job/{cluster}.{proc}"
    ad: Ad = {
        "Name": "slot1@m", "Machine": "m", "SlotType": "Static", "SlotID": 1, "TotalSlots": 1,
        "Cpus": 1, "Memory": 128, "Disk": 1024, "TotalSlotCpus": 1, "TotalSlotMemory": 128, "TotalSlotDisk": 1024,
        "TotalCpus": 1, "TotalMemory": 128, "TotalDisk": 1024, "SlotWeight": 1, "State": "Claimed",
        "Requirements": Expr("START"), "START": True,
    }  # fmt: skip
    granted = ClaimGranted(
        claim=claim, startd="m", slot="slot1@m", slot_ad=ad, submitter="ada", autocluster=0, lease=60.0
    )
    past.record(began, SCHEDD, f"claim/{claim}", granted)
    past.record(began, SCHEDD, stream, JobAssigned(attempt=1, claim=claim, slot="slot1@m", startd="m"))
    started = BEGIN + _AHEAD + began + 0.25
    past.record(began + 0.25, SCHEDD, stream, JobStarted(attempt=1, at=started))
    exited = ExitRecord(code=0, at=started + program)
    past.record(ended, SCHEDD, stream, JobCompleted(attempt=1, exit=exited))
    past.record(ended, SCHEDD, f"claim/{claim}", ClaimEnded(claim=claim, reason="done"))


def _periods(*times: tuple[float, float], over: float = 1.0) -> list[Period]:
    """
    Eight jobs of 50 s on one core: each occupies it for `over` seconds longer, and the next has it 2 s after the end.
    """
    past = InventedHistory()
    past.machine("m", cpus=1)
    cluster = past.submit("ada", jobs=8, seconds=50)
    for proc in range(8):
        began = 2.0 + (52.0 + over) * proc
        _ran(past, cluster, proc, began, began + 50.0 + over, 50.0)
    found: list[Period] = []
    for since, until in times:
        recording = Recording(moment(since), moment(until), SHARDS)
        for frame in past.frames():
            recording.feed(frame)
        found.append(recording.period())
    return found


def test_delays_are_medians_of_what_is_recorded() -> None:
    (period,) = _periods((-5, 250))
    assert fitted(period) == FittedDelays(latency=2_000_000, gaps=4, start=1_000_000, attempts=4)


def test_a_pool_that_stays_as_it_was_is_predicted() -> None:
    first, held_out = _periods((-5, 200), (200, 600))
    found = calibrate(first, held_out, USUAL)
    assert (found.latency, found.start) == (2.0, 1.0)
    assert found.trust.begun_both == found.trust.begun_recorded == 4
    assert found.trust.apart_p90 == pytest.approx(0.0, abs=0.01)
    assert _errors(found) == pytest.approx([0.0, 0.0, 0.0], abs=1e-4)


def test_what_has_changed_since_shows_as_an_error() -> None:
    """
    In the part that is held out slots were occupied for 11 s longer each, of which the fit knows nothing: jobs begin at
    2 + 63n s there.
    """
    (first,) = _periods((-5, 200))
    (held_out,) = _periods((200, 600), over=11.0)
    found = calibrate(first, held_out, USUAL)
    assert found.span_error is not None
    assert found.span_error < -0.05


def _errors(found: Calibration) -> list[float | None]:
    return [found.wait_error, found.total_wait_error, found.span_error]
