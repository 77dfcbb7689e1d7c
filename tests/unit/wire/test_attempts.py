"""How an attempt ended, as it travels; and what earlier versions said of it."""

from typing import Any

import msgspec
import pytest

from kettle.execution.attempts.messages import AttemptOver, EndJob, decode_to_startd, decode_to_starter
from kettle_wire.attempts import SUBCODES, AttemptResult, Ending, ExitRecord, Transfer, Usage
from kettle_wire.codes import HoldCode, VacateCode
from kettle_wire.events import JobCompleted, JobVacated, decode, encode
from kettle_wire.worker_reports import FinalReport, OutputFile, Report, Reports, not_made

USAGE = {"wall": 7.0, "sent": 3}
FILE = {"name": "f", "mode": 420, "size": 1, "data": b"x"}
MOVED = {"began": 1.0, "ended": 2.0}
USED = Usage(wall=7.0, sent=3)


@pytest.mark.parametrize("given", [{}, {"code": 0, "signal": 9}])
def test_a_program_ends_in_one_way(given: dict[str, Any]) -> None:
    """Neither nor, and both, is refused by whoever reads it."""
    with pytest.raises(ValueError, match="an exit code or by a signal"):
        ExitRecord(**given)
    with pytest.raises(msgspec.ValidationError, match="an exit code or by a signal"):
        msgspec.msgpack.decode(msgspec.msgpack.encode(given), type=ExitRecord)


def test_the_code_says_what_becomes_of_the_job() -> None:
    """HTCondor's holds are below 1000: every code of ours is on its side."""
    assert all(Ending(code=code, reason="").holds for code in HoldCode)
    assert not any(Ending(code=code, reason="").holds for code in VacateCode)


@pytest.mark.parametrize(
    "given",
    [{"code": -1}, {"code": SUBCODES}, {"code": 3, "subcode": SUBCODES}, {"code": 3, "subcode": -SUBCODES}],
)
def test_a_code_that_nobody_could_keep_is_refused(given: dict[str, int]) -> None:
    """Tables of projections have 32 bits for it."""
    with pytest.raises(msgspec.ValidationError, match="Expected `int`"):
        msgspec.convert({"reason": "", **given}, Ending)


OLD: list[tuple[dict[str, Any], FinalReport]] = [
    (
        {
            "type": "exited",
            "exit_code": 3,
            "at": 5.0,
            "usage": USAGE,
            "outputs": [FILE],
            "output": MOVED,
            "told": {"A": "1"},
        },
        FinalReport(
            result=AttemptResult(
                exit=ExitRecord(code=3, at=5.0, output=Transfer(began=1.0, ended=2.0)), usage=USED
            ),
            outputs=[OutputFile(name="f", mode=420, size=1, data=b"x")],
            told={"A": "1"},
        ),
    ),
    (
        {"type": "exited", "exit_signal": 11, "dumped": True, "core": "core.1.0"},
        FinalReport(result=AttemptResult(exit=ExitRecord(signal=11, dumped=True, core="core.1.0"))),
    ),
    (
        {"type": "exited", "exit_code": 0, "missing": ["a", "b"]},
        FinalReport(result=AttemptResult(exit=ExitRecord(code=0), ending=not_made(["a", "b"]))),
    ),
    (
        {
            "type": "exited",
            "exit_code": 0,
            "missing": ["a"],
            "trouble": {"code": 12, "subcode": 256, "reason": "no"},
        },
        FinalReport(
            result=AttemptResult(exit=ExitRecord(code=0), ending=Ending(code=12, subcode=256, reason="no"))
        ),
    ),
    ({"type": "exited"}, FinalReport(result=AttemptResult())),
    (
        {"type": "failed", "hold": True, "code": 34, "subcode": 102, "reason": "memory", "usage": USAGE},
        FinalReport(result=AttemptResult(ending=Ending(code=34, subcode=102, reason="memory"), usage=USED)),
    ),
    (
        {"type": "failed", "hold": False, "code": 1004, "reason": "v", "outputs": [FILE], "told": {"A": "1"}},
        FinalReport(
            result=AttemptResult(ending=Ending(code=1004, reason="v")),
            outputs=[OutputFile(name="f", mode=420, size=1, data=b"x")],
            told={"A": "1"},
        ),
    ),
]


@pytest.mark.parametrize(("told", "meant"), OLD)
def test_final_reports_of_earlier_versions_are_read(told: dict[str, Any], meant: FinalReport) -> None:
    """Wherever they are: on the bus, on a worker's disk, in the last words of an older starter."""
    report = {"claim": "c", "attempt": 1, "sequence": 2, "job": [1, 0], "body": told}
    stored = {"schedd": "s", "secret": "x", "report": report}
    pack = msgspec.msgpack.encode

    on_the_bus = msgspec.msgpack.decode(pack({"startd": "w", "reports": [report]}), type=Reports).reports[0]
    over = decode_to_startd(pack({"type": "over", "report": stored}))

    assert isinstance(over, AttemptOver)
    assert meant == on_the_bus.body == over.report.report.body
    assert on_the_bus == msgspec.msgpack.decode(pack(on_the_bus), type=Report)


def test_a_starter_of_an_earlier_version_hears_the_order_to_end() -> None:
    """Each side gives its fields the names that the other knows; what it leaves out has a default there."""
    told = msgspec.msgpack.decode(msgspec.msgpack.encode(EndJob(21, "go home", subcode=7)))
    assert {"type": "end", "code": 21, "reason": "go home", "hard": False, "subcode": 7} == told

    heard = decode_to_starter(msgspec.msgpack.encode({**told, "hold": True, "hard": True}))
    assert EndJob(21, "go home", hard=True, subcode=7) == heard
    assert isinstance(heard, EndJob)
    assert Ending(code=21, subcode=7, reason="go home") == heard.ending


def test_ends_of_jobs_that_were_recorded_before_are_read() -> None:
    """Exits and codes become values of their own; neither code nor signal always counted as the code 0."""
    pack = msgspec.msgpack.encode
    moved = Transfer(began=1.0, ended=2.0)
    vacated = {"event": "job.vacated/1", "attempt": 2, "code": 1005, "reason": "again", "usage": USAGE}
    completed = {"event": "job.completed/1", "attempt": 1}
    again = Ending(code=1005, reason="again")

    assert JobVacated(attempt=2, ending=again, usage=USED) == decode(pack(vacated))
    assert JobVacated(
        attempt=2, ending=again, exit=ExitRecord(code=3, at=5.0, output=moved), usage=USED, cool_down=20.0
    ) == decode(pack({**vacated, "exit_code": 3, "at": 5.0, "output": MOVED, "cool_down": 20.0}))
    assert JobCompleted(
        attempt=1, exit=ExitRecord(signal=11, at=5.0, dumped=True, core="/core", output=moved), usage=USED
    ) == decode(
        pack(
            {
                **completed,
                "exit_signal": 11,
                "at": 5.0,
                "dumped": True,
                "core": "/core",
                "output": MOVED,
                "usage": USAGE,
            }
        )
    )
    assert JobCompleted(attempt=1, exit=ExitRecord(code=0)) == decode(pack(completed))
    both = decode(pack({**completed, "exit_code": 1, "exit_signal": 9}))
    assert JobCompleted(attempt=1, exit=ExitRecord(signal=9)) == both == decode(encode(both))
